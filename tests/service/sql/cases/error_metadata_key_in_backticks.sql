-- error: expected a metadata key in single quotes, found "timestamp"
-- fixed: FROM `timestamp` => FROM 'timestamp'
CREATE TABLE s (k BIGINT, at TIMESTAMP_LTZ(3) METADATA FROM `timestamp` VIRTUAL) WITH (
    'connector' = 'kafka', 'topic' = 's', 'properties.bootstrap.servers' = 'broker:9092', 'format' = 'json'
);
SELECT k, at FROM s;
