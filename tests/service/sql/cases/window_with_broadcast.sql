-- plan: LOOKUP d BY broadcast (option of the table)
CREATE TABLE d (id BIGINT, name STRING, price DECIMAL(10, 2), since TIMESTAMP(3), PRIMARY KEY (id) NOT ENFORCED) WITH (
    'connector' = 'mysql-cdc', 'hostname' = 'db', 'username' = 'cdc', 'password' = '${secret:shop}',
    'database-name' = 'shop', 'table-name' = 'd', 'lookup.strategy' = 'broadcast'
);
CREATE TABLE s (k BIGINT, n INT, amount DECIMAL(8, 3), t STRING, ts TIMESTAMP(3), p AS PROCTIME(), WATERMARK FOR ts AS ts - INTERVAL '5' SECOND) WITH (
    'connector' = 'kafka', 'topic' = 's', 'properties.bootstrap.servers' = 'broker:9092', 'format' = 'json',
    'scan.startup.mode' = 'earliest-offset'
);
CREATE TABLE o (at TIMESTAMP(3), name STRING, x BIGINT) WITH ('connector' = 'blackhole');
CREATE VIEW j AS SELECT s.*, d.name FROM s LEFT JOIN d FOR SYSTEM_TIME AS OF s.ts ON s.k = d.id;
INSERT INTO o SELECT window_start, name, COUNT(*)
FROM TABLE(TUMBLE(TABLE j, DESCRIPTOR(ts), INTERVAL '1' MINUTE))
GROUP BY window_start, window_end, name;
