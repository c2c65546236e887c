-- plan: INTO o delta(o, merged by at, x) NOT NULL at, x
CREATE TABLE s (k INT, ts TIMESTAMP_LTZ(3), WATERMARK FOR ts AS ts - INTERVAL '5' SECOND) WITH (
    'connector' = 'kafka', 'topic' = 's', 'properties.bootstrap.servers' = 'broker:9092', 'format' = 'json',
    'scan.startup.mode' = 'earliest-offset'
);
CREATE TABLE o (at TIMESTAMP_LTZ(3), x BIGINT, PRIMARY KEY (at, x) NOT ENFORCED) WITH ('connector' = 'delta', 'path' = 'o');
SET 'table.exec.emit.allow-lateness' = '1 min';
INSERT INTO o SELECT window_start, k
FROM TABLE(TUMBLE(TABLE s, DESCRIPTOR(ts), INTERVAL '1' MINUTE))
GROUP BY window_start, window_end, k;
