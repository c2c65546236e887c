"""Sources of dimensions: each copies its table, then follows its changes."""
