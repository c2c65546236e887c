-- error: table "a" and table "b" cannot be one stream: option "properties.bootstrap.servers" is "broker:9092" and "other:9092"
-- fixed: other:9092 => broker:9092
-- with: a_plain out_id_name
CREATE TABLE b (id BIGINT, p AS PROCTIME()) WITH (
    'connector' = 'kafka', 'topic' = 'b', 'properties.bootstrap.servers' = 'other:9092',
    'format' = 'json', 'scan.startup.mode' = 'earliest-offset'
);
INSERT INTO o (id) SELECT id FROM a UNION ALL SELECT id FROM b;
