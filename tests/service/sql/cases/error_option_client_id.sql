-- error: expected 1 to 200 letters, digits, '.', '_' or '-'
-- fixed: my client => my-client
-- with: d_small
CREATE TABLE s (k BIGINT, p AS PROCTIME()) WITH (
    'connector' = 'kafka', 'topic' = 's', 'properties.bootstrap.servers' = 'broker:9092', 'format' = 'json',
    'scan.startup.mode' = 'earliest-offset', 'properties.client.id' = 'my client'
);
CREATE TABLE o (x BIGINT) WITH ('connector' = 'blackhole');
INSERT INTO o SELECT s.k
FROM s JOIN d FOR SYSTEM_TIME AS OF s.p ON s.k = d.id;
