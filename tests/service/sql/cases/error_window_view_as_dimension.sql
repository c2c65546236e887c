-- error: view "w" has a window, so it cannot be a dimension
CREATE TABLE d (id BIGINT, name STRING, price DECIMAL(10, 2), since TIMESTAMP(3), PRIMARY KEY (id) NOT ENFORCED, WATERMARK FOR since AS since) WITH (
    'connector' = 'mysql-cdc', 'hostname' = 'db', 'username' = 'cdc', 'password' = '${secret:shop}',
    'database-name' = 'shop', 'table-name' = 'd'
);
CREATE TABLE s (k BIGINT, n INT, amount DECIMAL(8, 3), t STRING, ts TIMESTAMP(3), p AS PROCTIME(), WATERMARK FOR ts AS ts - INTERVAL '5' SECOND) WITH (
    'connector' = 'kafka', 'topic' = 's', 'properties.bootstrap.servers' = 'broker:9092', 'format' = 'json',
    'scan.startup.mode' = 'earliest-offset'
);
CREATE TABLE o (at TIMESTAMP(3), x BIGINT) WITH ('connector' = 'blackhole');
CREATE VIEW w AS SELECT * FROM TABLE(TUMBLE(TABLE d, DESCRIPTOR(since), INTERVAL '1' MINUTE));
INSERT INTO o SELECT s.ts, s.k FROM s JOIN w FOR SYSTEM_TIME AS OF s.ts ON s.k = w.id;
