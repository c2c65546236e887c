-- error: table "a" and table "b" cannot be one stream: option "scan.bounded.mode" is "unbounded" and "latest-offset"
-- fixed: , 'scan.bounded.mode' = 'latest-offset' => 
-- with: a_plain out_id_name
CREATE TABLE b (id BIGINT, p AS PROCTIME()) WITH (
    'connector' = 'kafka', 'topic' = 'b', 'properties.bootstrap.servers' = 'broker:9092',
    'format' = 'json', 'scan.startup.mode' = 'earliest-offset', 'scan.bounded.mode' = 'latest-offset'
);
INSERT INTO o (id) SELECT id FROM a UNION ALL SELECT id FROM b;
