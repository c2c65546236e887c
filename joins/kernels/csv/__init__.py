"""CSV: records of a topic or of a file as cells, and rows as CSV."""
