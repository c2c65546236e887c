"""Functions with words between their arguments, read from a cursor."""
