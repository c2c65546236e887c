-- error: Did you mean "timestamp"?
CREATE TABLE s (k BIGINT, at TIMESTAMP_LTZ(3) METADATA FROM 'timestmp' VIRTUAL) WITH (
    'connector' = 'kafka', 'topic' = 's', 'properties.bootstrap.servers' = 'broker:9092', 'format' = 'json'
);
SELECT k, at FROM s;
