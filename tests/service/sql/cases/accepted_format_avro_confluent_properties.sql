-- warning: Option "avro-confluent.properties.a" of table "s" has no effect: it configures the Java client.
-- with: d_small … out_bigint join_k
CREATE TABLE s (k BIGINT, id STRING, p AS PROCTIME()) WITH (
    'connector' = 'kafka', 'topic' = 's', 'properties.bootstrap.servers' = 'broker:9092',
    'scan.startup.mode' = 'earliest-offset', 'format' = 'avro-confluent', 'avro-confluent.url' = 'https://r:1', 'avro-confluent.properties.a' = 'b'
);
