-- error: unknown column "a"
-- fixed: b AS a + 1 => b AS k + 1 + 1
-- with: d_small … out_bigint join_k
CREATE TABLE s (k BIGINT, a AS k + 1, b AS a + 1, p AS PROCTIME()) WITH (
    'connector' = 'kafka', 'topic' = 's', 'properties.bootstrap.servers' = 'broker:9092', 'format' = 'json',
    'scan.startup.mode' = 'earliest-offset'
);
