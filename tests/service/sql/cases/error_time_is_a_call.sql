-- error: takes a column of the probe
-- fixed: AS OF CURRENT_TIMESTAMP => AS OF PROCTIME()
CREATE TABLE d (
    id BIGINT, name STRING, price DECIMAL(10, 2), level INT, since TIMESTAMP(3),
    PRIMARY KEY (id) NOT ENFORCED
) WITH (
    'connector' = 'mysql-cdc', 'hostname' = 'db', 'username' = 'cdc', 'password' = '${secret:shop}',
    'database-name' = 'shop', 'table-name' = 'd'
);
CREATE TABLE s (
    k BIGINT, n INT, tiny TINYINT, t STRING, amount DECIMAL(8, 3), r DOUBLE, f FLOAT, ok BOOLEAN,
    b BYTES, dt DATE, tm TIME, ts TIMESTAMP(3), inst TIMESTAMP_LTZ(3), p AS PROCTIME()
) WITH (
    'connector' = 'kafka', 'topic' = 's', 'properties.bootstrap.servers' = 'broker:9092',
    'format' = 'json', 'scan.startup.mode' = 'earliest-offset'
);
CREATE TABLE o (x BIGINT) WITH ('connector' = 'blackhole');
INSERT INTO o SELECT k FROM s JOIN d FOR SYSTEM_TIME AS OF CURRENT_TIMESTAMP ON s.k = d.id;
