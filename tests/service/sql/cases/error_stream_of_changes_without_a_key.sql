-- error: table "s" has no primary key, and its records are changes of rows
-- fixed: p AS PROCTIME() => p AS PROCTIME(), PRIMARY KEY (k) NOT ENFORCED
-- with: d_small out_bigint … join_k
CREATE TABLE s (k BIGINT, p AS PROCTIME()) WITH (
    'connector' = 'kafka', 'properties.bootstrap.servers' = 'b:9092', 'topic' = 's', 'format' = 'debezium-json',
    'scan.startup.mode' = 'earliest-offset'
);
