-- error: Declare it as TIMESTAMP_LTZ(3).
-- fixed: op_ts BIGINT => op_ts TIMESTAMP_LTZ(3)
-- with: s_key … out_bigint join_k
CREATE TABLE d (op_ts BIGINT METADATA VIRTUAL, id BIGINT PRIMARY KEY NOT ENFORCED, name STRING) WITH (
    'connector' = 'mysql-cdc', 'hostname' = 'db', 'username' = 'cdc', 'password' = '${secret:shop}',
    'database-name' = 'shop', 'table-name' = 'd'
);
