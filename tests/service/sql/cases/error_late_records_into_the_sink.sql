-- error: is the path of another table of the job
-- fixed: file:///lake/o' => file:///lake/late'
-- with: d_since … join_name_of_time
CREATE TABLE s (k BIGINT, n INT, amount DECIMAL(8, 3), t STRING, ts TIMESTAMP(3), p AS PROCTIME(), WATERMARK FOR ts AS ts - INTERVAL '5' SECOND) WITH (
    'connector' = 'kafka', 'topic' = 's', 'properties.bootstrap.servers' = 'broker:9092', 'format' = 'json',
    'scan.startup.mode' = 'earliest-offset', 'late-records.path' = 'file:///lake/o'
);
CREATE TABLE o (x BIGINT, y STRING) WITH ('connector' = 'delta', 'path' = '/lake/o/');
