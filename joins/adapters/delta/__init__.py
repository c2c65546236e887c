"""Delta tables through delta-rs and files of the log."""
