-- error: column "m" is ARRAY<ARRAY<INT>>, which a csv cell cannot hold
-- fixed: m ARRAY<ARRAY<INT>> => m ARRAY<INT>
-- with: d_small … out_bigint join_k
CREATE TABLE s (k BIGINT, m ARRAY<ARRAY<INT>>, p AS PROCTIME()) WITH (
    'connector' = 'kafka', 'topic' = 's', 'properties.bootstrap.servers' = 'broker:9092',
    'scan.startup.mode' = 'earliest-offset', 'format' = 'csv'
);
