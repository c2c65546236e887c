-- error: column "a b" has a name that Avro does not have
-- fixed: `a b` => ab
-- with: d_small … out_bigint join_k
CREATE TABLE s (k BIGINT, `a b` INT, p AS PROCTIME()) WITH (
    'connector' = 'kafka', 'topic' = 's', 'properties.bootstrap.servers' = 'broker:9092',
    'scan.startup.mode' = 'earliest-offset', 'format' = 'avro'
);
