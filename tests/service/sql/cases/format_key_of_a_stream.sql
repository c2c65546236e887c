-- plan: FROM s AS s kafka(s @ broker:9092, earliest-offset, key k1; k2 of json(fail-on-missing-field true) without k and not in the value, json(fail-on-missing-field false)) [k1 BIGINT, k2 BIGINT, id STRING, p = PROCTIME()]
-- with: d_small
CREATE TABLE s (k1 BIGINT, k2 BIGINT, id STRING, p AS PROCTIME()) WITH (
    'connector' = 'kafka', 'topic' = 's', 'properties.bootstrap.servers' = 'broker:9092',
    'scan.startup.mode' = 'earliest-offset', 'value.format' = 'json', 'value.json.fail-on-missing-field' = 'false', 'key.format' = 'json', 'key.json.fail-on-missing-field' = 'true',
    'key.fields' = 'k1;k2', 'key.fields-prefix' = 'k', 'value.fields-include' = 'EXCEPT_KEY'
);
CREATE TABLE o (x BIGINT) WITH ('connector' = 'blackhole');
INSERT INTO o SELECT s.k1 FROM s JOIN d FOR SYSTEM_TIME AS OF s.p ON s.k1 = d.id;
