"""The program that changes modules for a reduction, in a process with the newest jaxlib: editing_program.py."""
