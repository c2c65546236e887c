"""MySQL and MariaDB: snapshot, binlog, and statements in it."""
