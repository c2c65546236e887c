-- error: table "a" and table "b" cannot be one stream: "b" has option "topic-pattern"
-- fixed: 'topic-pattern' = 'b.*' => 'topic' = 'b;c'
-- with: a_plain out_id_name
CREATE TABLE b (id BIGINT, p AS PROCTIME()) WITH (
    'connector' = 'kafka', 'topic-pattern' = 'b.*', 'properties.bootstrap.servers' = 'broker:9092',
    'format' = 'json', 'scan.startup.mode' = 'earliest-offset'
);
INSERT INTO o (id) SELECT id FROM a UNION ALL SELECT id FROM b;
