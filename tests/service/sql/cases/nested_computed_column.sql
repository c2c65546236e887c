-- plan: SELECT s.uid AS x
-- with: d_named
CREATE TABLE s (
    payload ROW<user_id BIGINT, `user` ROW<id BIGINT, mail STRING NOT NULL>, at_ms BIGINT>,
    items ARRAY<ROW<sku STRING, n INT>>, labels MAP<STRING, STRING>, n INT, k BIGINT, uid AS payload.user_id, p AS PROCTIME()
) WITH (
    'connector' = 'kafka', 'topic' = 's', 'properties.bootstrap.servers' = 'broker:9092',
    'format' = 'json', 'scan.startup.mode' = 'earliest-offset'
);
CREATE TABLE o (x BIGINT) WITH ('connector' = 'blackhole');
INSERT INTO o SELECT uid FROM s JOIN d FOR SYSTEM_TIME AS OF s.p ON uid = d.id;
