#!/bin/sh
# Run once by the database image's entrypoint: the user that reads tables and binlog, and nothing more.
set -eu
mariadb --user=root --password="$MARIADB_ROOT_PASSWORD" <<EOF
CREATE USER IF NOT EXISTS cdc@'%' IDENTIFIED BY '$CDC_PASSWORD';
GRANT SELECT, RELOAD, LOCK TABLES, SHOW DATABASES, REPLICATION SLAVE, REPLICATION CLIENT ON *.* TO cdc@'%';
EOF
