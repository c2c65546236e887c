-- error: Write one of s.id, d.id.
-- fixed: SELECT id => SELECT s.id
-- with: d_small out_bigint
CREATE TABLE s (id BIGINT, p AS PROCTIME()) WITH (
    'connector' = 'kafka', 'topic' = 's', 'properties.bootstrap.servers' = 'broker:9092', 'format' = 'json',
    'scan.startup.mode' = 'earliest-offset'
);
INSERT INTO o SELECT id FROM s JOIN d FOR SYSTEM_TIME AS OF s.p ON s.id = d.id;
