"""Row images of the binlog: their bytes, their columns, their values."""
