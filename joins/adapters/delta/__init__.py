"""Delta tables through delta-rs, our own log entries and Spark's writer."""
