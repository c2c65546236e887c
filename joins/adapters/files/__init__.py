"""Files that others have written, as sources of dimensions: listed, read once."""
