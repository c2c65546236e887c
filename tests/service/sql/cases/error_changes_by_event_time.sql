-- error: a record that waits for its rowtime could replace the row of a newer one
-- fixed: AS OF s.ts => AS OF PROCTIME()
-- with: d_since out_bigint_string … join_name_of_time
CREATE TABLE s (k BIGINT, n INT, amount DECIMAL(8, 3), t STRING, PRIMARY KEY (k) NOT ENFORCED, ts TIMESTAMP(3), p AS PROCTIME(), WATERMARK FOR ts AS ts - INTERVAL '5' SECOND) WITH (
    'connector' = 'upsert-kafka', 'topic' = 's', 'properties.bootstrap.servers' = 'broker:9092', 'key.format' = 'json', 'value.format' = 'json'
);
