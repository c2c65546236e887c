-- error: such as db_[0-9]+ or (orders|items)_.*
-- fixed: d|d_[0-9]+ => (d|d_[0-9]+)
-- with: s_key … out_bigint join_k
CREATE TABLE d (table_name STRING METADATA, id BIGINT, name STRING, PRIMARY KEY (table_name, id) NOT ENFORCED) WITH (
    'connector' = 'mysql-cdc', 'hostname' = 'db', 'username' = 'cdc', 'password' = '${secret:shop}',
    'database-name' = 'shop', 'table-name' = 'd|d_[0-9]+'
);
