-- error: column "m" is MAP<STRING, INT>, which a csv cell cannot hold
-- fixed: m MAP<STRING, INT> => m STRING
-- with: d_small … out_bigint join_k
CREATE TABLE s (k BIGINT, m MAP<STRING, INT>, p AS PROCTIME()) WITH (
    'connector' = 'kafka', 'topic' = 's', 'properties.bootstrap.servers' = 'broker:9092',
    'scan.startup.mode' = 'earliest-offset', 'format' = 'csv'
);
