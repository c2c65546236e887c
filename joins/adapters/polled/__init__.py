"""Tables of databases that are read again and again by queries: PostgreSQL, MySQL, MariaDB."""
