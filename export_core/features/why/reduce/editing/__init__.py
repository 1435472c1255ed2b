"""The program that changes modules for a reduction, in an interpreter with the newest jaxlib: editing_program.py."""
