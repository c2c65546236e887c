-- What Debezium has written of a table becomes its history in a Delta table: a stream without any join.
SET 'pipeline.name' = 'changes-into-a-lake';
CREATE TABLE changes (
  op STRING, ts_ms BIGINT,
  `before` ROW<id BIGINT, name STRING, city STRING>, `after` ROW<id BIGINT, name STRING, city STRING>
) WITH (
  'connector' = 'kafka', 'topic' = 'example-changes', 'properties.bootstrap.servers' = '<kafka>',
  'format' = 'json', 'scan.startup.mode' = 'earliest-offset'
);
CREATE TABLE history (id BIGINT, op STRING, name STRING, city STRING, changed_at TIMESTAMP_LTZ(3), `day` STRING)
PARTITIONED BY (`day`) WITH ('connector' = 'delta', 'path' = 'example_history');
INSERT INTO history
SELECT
  COALESCE(`after`.id, `before`.id), op, `after`.name, `after`.city,
  TO_TIMESTAMP_LTZ(ts_ms, 3), DATE_FORMAT(TO_TIMESTAMP_LTZ(ts_ms, 3), 'yyyy-MM-dd')
FROM changes
WHERE op IN ('r', 'c', 'u', 'd');
