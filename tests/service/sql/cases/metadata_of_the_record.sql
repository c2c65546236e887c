-- plan: FROM s AS s kafka(s @ broker:9092, earliest-offset) [k BIGINT, id BYTES METADATA key, headers MAP<STRING, BYTES> METADATA headers, epoch INT METADATA leader-epoch, stamped STRING METADATA timestamp-type, p = PROCTIME()]
-- with: d_small
CREATE TABLE s (k BIGINT, id BYTES METADATA FROM 'key' VIRTUAL, headers MAP<STRING, BYTES> METADATA VIRTUAL,
    epoch INT METADATA FROM 'leader-epoch' VIRTUAL, stamped STRING METADATA FROM 'timestamp-type' VIRTUAL, p AS PROCTIME()) WITH (
    'connector' = 'kafka', 'topic' = 's', 'properties.bootstrap.servers' = 'broker:9092',
    'scan.startup.mode' = 'earliest-offset', 'format' = 'json'
);
CREATE TABLE o (x BIGINT) WITH ('connector' = 'blackhole');
INSERT INTO o SELECT s.k FROM s JOIN d FOR SYSTEM_TIME AS OF s.p ON s.k = d.id;
