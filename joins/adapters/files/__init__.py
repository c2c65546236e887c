"""Files as sources of dimensions: listed and read once."""
