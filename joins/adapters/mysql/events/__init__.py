"""Events of the binlog: their bytes, and what they do to one table."""
