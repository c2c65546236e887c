-- plan: SELECT orders.id AS id, orders.currency AS name | INTO o blackhole() | SET execution.runtime-mode = streaming | SET pipeline.name = a job | SET sluice.trigger-interval = 1000 ms | SET table.exec.source.idle-timeout = 5000 ms
-- with: orders
SET execution.runtime-mode = streaming;
SET pipeline.name = a job;
SET table.exec.source.idle-timeout = 5 s;
SET 'sluice.trigger-interval' = 1s;
CREATE TABLE o (id BIGINT, name STRING) WITH ('connector' = 'blackhole');
INSERT INTO o SELECT id, currency FROM orders;
