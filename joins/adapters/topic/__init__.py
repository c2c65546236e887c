"""Topics as sources of dimensions: read, checked for completeness, sent on."""
