-- error: a join behind SESSION
-- fixed: INSERT INTO o => CREATE VIEW joined AS SELECT s.* FROM s JOIN d FOR SYSTEM_TIME AS OF s.p ON s.k = d.id; INSERT INTO o
-- fixed: TABLE s, DESCRIPTOR => TABLE joined, DESCRIPTOR
-- fixed: JOIN d FOR SYSTEM_TIME AS OF s.p ON s.k = d.id GROUP => GROUP
CREATE TABLE d (id BIGINT, name STRING, price DECIMAL(10, 2), since TIMESTAMP(3), PRIMARY KEY (id) NOT ENFORCED) WITH (
    'connector' = 'mysql-cdc', 'hostname' = 'db', 'username' = 'cdc', 'password' = '${secret:shop}',
    'database-name' = 'shop', 'table-name' = 'd'
);
CREATE TABLE s (k BIGINT, n INT, amount DECIMAL(8, 3), t STRING, ts TIMESTAMP(3), p AS PROCTIME(), WATERMARK FOR ts AS ts - INTERVAL '5' SECOND) WITH (
    'connector' = 'kafka', 'topic' = 's', 'properties.bootstrap.servers' = 'broker:9092', 'format' = 'json',
    'scan.startup.mode' = 'earliest-offset'
);
CREATE TABLE o (at TIMESTAMP(3), x BIGINT) WITH ('connector' = 'blackhole');
INSERT INTO o SELECT window_start, COUNT(*)
FROM TABLE(SESSION(TABLE s, DESCRIPTOR(ts), INTERVAL '1' MINUTE))
JOIN d FOR SYSTEM_TIME AS OF s.p ON s.k = d.id GROUP BY window_start, window_end;
