-- plan: WINDOW CUMULATE of orders.created, size 86400000 ms, step 60000 ms | GROUP BY window_start, window_end | AGGREGATE SUM(orders.amount):DECIMAL(38, 2) AS a0, COUNT(DISTINCT orders.id):BIGINT AS a1 | SELECT DATE_FORMAT(window_start, 'yyyy-MM-dd') AS day_of, window_end AS minute_of, a0 AS gmv, a1 AS buyers | INTO gmv upsert-kafka(gmv @ broker:9092, key minute_of) NOT NULL minute_of
SET 'table.exec.mini-batch.enabled' = 'true';
SET 'table.exec.mini-batch.allow-latency' = '5 s';
SET 'table.local-time-zone' = 'Asia/Shanghai';
CREATE TABLE orders (id BIGINT, amount DECIMAL(12, 2), created TIMESTAMP(3), WATERMARK FOR created AS created - INTERVAL '5' SECOND) WITH ('connector' = 'kafka', 'topic' = 'orders', 'properties.bootstrap.servers' = 'broker:9092', 'scan.startup.mode' = 'earliest-offset', 'format' = 'json');
CREATE TABLE gmv (day_of STRING, minute_of TIMESTAMP(3), gmv DECIMAL(38, 2), buyers BIGINT, PRIMARY KEY (minute_of) NOT ENFORCED) WITH ('connector' = 'upsert-kafka', 'topic' = 'gmv', 'properties.bootstrap.servers' = 'broker:9092', 'key.format' = 'json', 'value.format' = 'json');
INSERT INTO gmv
SELECT DATE_FORMAT(window_start, 'yyyy-MM-dd'), window_end, SUM(amount), COUNT(DISTINCT id)
FROM TABLE(CUMULATE(TABLE orders, DESCRIPTOR(created), INTERVAL '1' MINUTES, INTERVAL '1' DAY))
GROUP BY window_start, window_end;
