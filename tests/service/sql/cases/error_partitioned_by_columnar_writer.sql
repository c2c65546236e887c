-- error: table "lake" is PARTITIONED BY columns, which the columnar writer does not support
-- fixed: , 'sink.writer' = 'columnar' => 
-- with: orders
CREATE TABLE lake (id BIGINT, day STRING, hour INT) PARTITIONED BY (day, hour) WITH ('connector' = 'delta', 'path' = 'lake', 'sink.writer' = 'columnar');
INSERT INTO lake SELECT id, currency, 3 FROM orders;
