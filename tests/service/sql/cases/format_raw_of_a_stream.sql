-- plan: FROM s AS s kafka(s @ broker:9092, earliest-offset, key k of raw(endianness little-endian) and not in the value, raw(charset ISO-8859-1)) [k BIGINT, id STRING, p = PROCTIME()]
-- with: d_small
CREATE TABLE s (k BIGINT, id STRING, p AS PROCTIME()) WITH (
    'connector' = 'kafka', 'topic' = 's', 'properties.bootstrap.servers' = 'broker:9092',
    'scan.startup.mode' = 'earliest-offset', 'format' = 'raw', 'raw.charset' = 'ISO-8859-1', 'key.format' = 'raw', 'key.fields' = 'k',
    'key.raw.endianness' = 'little-endian', 'value.fields-include' = 'EXCEPT_KEY'
);
CREATE TABLE o (x BIGINT) WITH ('connector' = 'blackhole');
INSERT INTO o SELECT s.k FROM s JOIN d FOR SYSTEM_TIME AS OF s.p ON s.k = d.id;
