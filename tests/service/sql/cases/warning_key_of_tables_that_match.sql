-- warning: Table "d" has the primary key (database_name, tbl, id): each of its tables may have the same keys.
-- with: s_key … out_bigint join_k
CREATE TABLE d (database_name STRING METADATA VIRTUAL, tbl STRING METADATA FROM 'table_name', id BIGINT PRIMARY KEY NOT ENFORCED, name STRING) WITH (
    'connector' = 'mysql-cdc', 'hostname' = 'db', 'username' = 'cdc', 'password' = '${secret:shop}',
    'database-name' = 'db_[0-9]+', 'table-name' = 't_.*'
);
