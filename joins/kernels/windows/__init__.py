"""Windows on the workers: rows into parts of windows, parts and state into results."""
