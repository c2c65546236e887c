#!/bin/sh
# Run once by the database image's entrypoint: the user that reads tables and binlog, and nothing more.
set -eu
password=$(printf %s "$CDC_PASSWORD" | sed "s/['\\\\]/\\\\&/g") # as a text of SQL
mariadb --user=root --password="$MARIADB_ROOT_PASSWORD" <<EOF
CREATE USER IF NOT EXISTS cdc@'%' IDENTIFIED BY '$password';
GRANT SELECT, RELOAD, LOCK TABLES, SHOW DATABASES, REPLICATION SLAVE, REPLICATION CLIENT ON *.* TO cdc@'%';
EOF
