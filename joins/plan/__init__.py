"""The plan of a job.

Its types, its expressions, and the errors of the data path; imports nothing above it.
"""
