-- error: table "a" and table "b" cannot be one stream: option "scan.startup.mode" is "earliest-offset" and "latest-offset"
-- fixed: latest-offset => earliest-offset
-- with: a_plain out_id_name
CREATE TABLE b (id BIGINT, p AS PROCTIME()) WITH (
    'connector' = 'kafka', 'topic' = 'b', 'properties.bootstrap.servers' = 'broker:9092',
    'format' = 'json', 'scan.startup.mode' = 'latest-offset'
);
INSERT INTO o (id) SELECT id FROM a UNION ALL SELECT id FROM b;
