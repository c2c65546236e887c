-- error: scan.watermark.use-processing-time
-- with: s_event_time … out_bigint_string join_name_of_time
CREATE TABLE d (id BIGINT, name STRING, price DECIMAL(10, 2), since TIMESTAMP(3), PRIMARY KEY (id) NOT ENFORCED, WATERMARK FOR since AS since) WITH (
    'connector' = 'mysql-cdc', 'hostname' = 'db', 'username' = 'cdc', 'password' = '${secret:shop}',
    'database-name' = 'shop', 'table-name' = 'd', 'scan.watermark.use-processing-time' = 'after-backlog'
);
