-- error: Remove it from PRIMARY KEY, which has the columns of the server's key.
-- fixed: (id, op_ts) => (id)
-- with: s_key … out_bigint join_k
CREATE TABLE d (op_ts TIMESTAMP_LTZ(3) METADATA VIRTUAL, id BIGINT, name STRING, PRIMARY KEY (id, op_ts) NOT ENFORCED) WITH (
    'connector' = 'mysql-cdc', 'hostname' = 'db', 'username' = 'cdc', 'password' = '${secret:shop}',
    'database-name' = 'shop', 'table-name' = 'd'
);
