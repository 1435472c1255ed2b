"""The program that changes modules for a reduction, in an interpreter that has the newest jaxlib: see program.py."""
