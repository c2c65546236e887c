"""Topics that others write, as sources of dimensions: read, proven, sent on."""
