"""Functions of text and bytes that Arrow does not have."""
