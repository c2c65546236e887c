-- error: table "lake" is PARTITIONED BY columns, but its rows are replaced by key
-- fixed:  PARTITIONED BY (at) => 
-- with: orders
SET 'table.exec.emit.allow-lateness' = '1 min';
CREATE TABLE lake (at TIMESTAMP(3), n BIGINT, PRIMARY KEY (at) NOT ENFORCED) PARTITIONED BY (at) WITH ('connector' = 'delta', 'path' = 'lake');
INSERT INTO lake SELECT window_start, COUNT(*) FROM TABLE(TUMBLE(TABLE orders, DESCRIPTOR(ts), INTERVAL '1' MINUTE)) GROUP BY window_start, window_end;
