-- error: UNION ALL beside a window, a join by event time or 'join.late-rows.wait'
-- fixed: INSERT INTO p SELECT COUNT(*) FROM TABLE(TUMBLE(TABLE v, DESCRIPTOR(ts), INTERVAL '1' MINUTE)) GROUP BY window_start, window_end => INSERT INTO united SELECT * FROM v
-- with: orders
CREATE TABLE p (x BIGINT) WITH ('connector' = 'blackhole');
CREATE TABLE united (id BIGINT, ts TIMESTAMP(3)) WITH ('connector' = 'kafka', 'topic' = 'united', 'properties.bootstrap.servers' = 'broker:9092', 'format' = 'json');
CREATE TABLE others (id BIGINT, ts TIMESTAMP(3), WATERMARK FOR ts AS ts) WITH (
    'connector' = 'kafka', 'topic' = 'others', 'properties.bootstrap.servers' = 'broker:9092',
    'format' = 'json', 'scan.startup.mode' = 'earliest-offset'
);
CREATE VIEW v AS SELECT id, ts FROM orders UNION ALL SELECT id, ts FROM others;
INSERT INTO p SELECT COUNT(*) FROM TABLE(TUMBLE(TABLE v, DESCRIPTOR(ts), INTERVAL '1' MINUTE)) GROUP BY window_start, window_end;
