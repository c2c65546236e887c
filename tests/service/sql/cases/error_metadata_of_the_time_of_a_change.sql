-- error: Write METADATA FROM 'value.source.timestamp'.
-- fixed: METADATA VIRTUAL => METADATA FROM 'value.source.timestamp' VIRTUAL
CREATE TABLE c (id BIGINT, op_ts TIMESTAMP_LTZ(3) METADATA VIRTUAL, PRIMARY KEY (id) NOT ENFORCED) WITH ('connector' = 'kafka', 'topic' = 'c', 'properties.bootstrap.servers' = 'broker:9092', 'scan.startup.mode' = 'earliest-offset', 'format' = 'debezium-json');
CREATE TABLE o (x BIGINT, y TIMESTAMP_LTZ(3)) WITH ('connector' = 'print');
INSERT INTO o SELECT id, op_ts FROM c;
