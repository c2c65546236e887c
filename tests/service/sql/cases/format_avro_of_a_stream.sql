-- plan: FROM s AS s kafka(s @ broker:9092, earliest-offset, key k of avro and not in the value, avro(timestamp_mapping.legacy false)) [k BIGINT, t TIMESTAMP_LTZ(6), r ROW<`a` INT>, p = PROCTIME()]
-- with: d_small
CREATE TABLE s (k BIGINT, t TIMESTAMP_LTZ(6), r ROW<a INT>, p AS PROCTIME()) WITH (
    'connector' = 'kafka', 'topic' = 's', 'properties.bootstrap.servers' = 'broker:9092',
    'scan.startup.mode' = 'earliest-offset', 'format' = 'avro', 'avro.timestamp_mapping.legacy' = 'false', 'key.format' = 'avro', 'key.fields' = 'k',
    'value.fields-include' = 'EXCEPT_KEY'
);
CREATE TABLE o (x BIGINT) WITH ('connector' = 'blackhole');
INSERT INTO o SELECT s.k FROM s JOIN d FOR SYSTEM_TIME AS OF s.p ON s.k = d.id;
