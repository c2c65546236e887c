-- error: which cannot be an expression of names: missing ]
-- fixed: d_[0-9 => d_[0-9]+
-- with: s_key … out_bigint join_k
CREATE TABLE d (table_name STRING METADATA, id BIGINT, name STRING, PRIMARY KEY (table_name, id) NOT ENFORCED) WITH (
    'connector' = 'mysql-cdc', 'hostname' = 'db', 'username' = 'cdc', 'password' = '${secret:shop}',
    'database-name' = 'shop', 'table-name' = 'd_[0-9'
);
