-- plan: SELECT orders.id AS id, orders.currency AS name | INTO o blackhole() | SET table.local-time-zone = UTC
-- with: orders
SET 'parallelism.default' = '4';
SET execution.checkpointing.interval = 10 s;
SET 'table.exec.state.ttl' = '1 d';
SET 'sql-client.execution.result-mode' = 'tableau';
SET 'table.exec.mini-batch.enabled' = 'true';
SET 'table.sql-dialect' = 'default';
SET 'table.local-time-zone' = 'Etc/UTC';
RESET 'parallelism.default';
CREATE TABLE o (id BIGINT, name STRING) WITH ('connector' = 'blackhole');
INSERT INTO o SELECT id, currency FROM orders;
