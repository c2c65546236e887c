-- error: the watermark of a mysql-cdc table reads the clock
-- fixed: CAST(PROCTIME() AS TIMESTAMP(3)) => since - INTERVAL '5' SECOND
-- with: s_event_time … out_bigint_string join_name_of_time
CREATE TABLE d (id BIGINT, name STRING, price DECIMAL(10, 2), since TIMESTAMP(3), PRIMARY KEY (id) NOT ENFORCED, WATERMARK FOR since AS CAST(PROCTIME() AS TIMESTAMP(3))) WITH (
    'connector' = 'mysql-cdc', 'hostname' = 'db', 'username' = 'cdc', 'password' = '${secret:shop}',
    'database-name' = 'shop', 'table-name' = 'd'
);
