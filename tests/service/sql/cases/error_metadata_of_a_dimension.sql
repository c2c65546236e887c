-- error: Declare a TIMESTAMP(3) column that the application writes
-- fixed: op_ts TIMESTAMP_LTZ(3) METADATA FROM 'op_ts' VIRTUAL => op_ts TIMESTAMP(3), name STRING
-- with: s_event_time … out_bigint_string join_name_of_time
CREATE TABLE d (id BIGINT, op_ts TIMESTAMP_LTZ(3) METADATA FROM 'op_ts' VIRTUAL, PRIMARY KEY (id) NOT ENFORCED, WATERMARK FOR op_ts AS op_ts) WITH (
    'connector' = 'mysql-cdc', 'hostname' = 'db', 'username' = 'cdc', 'password' = '${secret:shop}',
    'database-name' = 'shop', 'table-name' = 'd'
);
