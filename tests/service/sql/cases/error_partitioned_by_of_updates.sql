-- error: table "lake" is PARTITIONED BY columns, but its rows are replaced by key
-- fixed:  PARTITIONED BY (at) => 
CREATE TABLE orders (
    id BIGINT, user_id BIGINT, currency STRING, price DECIMAL(10, 2), items ARRAY<STRING>,
    ts TIMESTAMP(3), proc_time AS PROCTIME(), WATERMARK FOR ts AS ts - INTERVAL '5' SECOND
) WITH (
    'connector' = 'kafka', 'topic' = 'orders', 'properties.bootstrap.servers' = 'broker:9092',
    'format' = 'json', 'scan.startup.mode' = 'earliest-offset'
);
SET 'table.exec.emit.allow-lateness' = '1 min';
CREATE TABLE lake (at TIMESTAMP(3), n BIGINT, PRIMARY KEY (at) NOT ENFORCED) PARTITIONED BY (at) WITH ('connector' = 'delta', 'path' = 'lake');
INSERT INTO lake SELECT window_start, COUNT(*) FROM TABLE(TUMBLE(TABLE orders, DESCRIPTOR(ts), INTERVAL '1' MINUTE)) GROUP BY window_start, window_end;
