"""The description of one artifact, or of two: facts as JSON, a screen drawn from them, the difference between them.

It stands beside report/, which loads the matrix and its libraries: here nothing may take longer to import than an
artifact to read.
"""
