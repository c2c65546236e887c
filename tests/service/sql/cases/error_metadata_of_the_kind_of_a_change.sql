-- error: Remove the column: rows do not have the kind of their change.
-- fixed: op STRING METADATA FROM 'row_kind', =>
CREATE TABLE c (id BIGINT, op STRING METADATA FROM 'row_kind', PRIMARY KEY (id) NOT ENFORCED) WITH ('connector' = 'kafka', 'topic' = 'c', 'properties.bootstrap.servers' = 'broker:9092', 'scan.startup.mode' = 'earliest-offset', 'format' = 'debezium-json');
CREATE TABLE o (x BIGINT) WITH ('connector' = 'print');
INSERT INTO o SELECT id FROM c;
