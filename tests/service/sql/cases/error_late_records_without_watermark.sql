-- error: option "late-records.path" has no effect without WATERMARK FOR
-- fixed: , 'late-records.path' = 'late' =>
-- with: d_since
CREATE TABLE s (k BIGINT, n INT, amount DECIMAL(8, 3), t STRING, ts TIMESTAMP(3), p AS PROCTIME()) WITH (
    'connector' = 'kafka', 'topic' = 's', 'properties.bootstrap.servers' = 'broker:9092', 'format' = 'json',
    'scan.startup.mode' = 'earliest-offset', 'late-records.path' = 'late'
);
CREATE TABLE o (x BIGINT, y STRING) WITH ('connector' = 'blackhole');
INSERT INTO o SELECT s.k, d.name FROM s JOIN d FOR SYSTEM_TIME AS OF s.p ON s.k = d.id;
