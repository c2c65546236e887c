-- error: connector "upsert-kafka" has no option "scan.startup.mode"
-- with: s_event_time
CREATE TABLE o (at TIMESTAMP(3), k BIGINT, x BIGINT, PRIMARY KEY (k) NOT ENFORCED) WITH ('connector' = 'upsert-kafka', 'topic' = 'o', 'properties.bootstrap.servers' = 'broker:9092',
    'key.format' = 'json', 'value.format' = 'json', 'scan.startup.mode' = 'earliest-offset');
INSERT INTO o SELECT window_start, k, COUNT(*)
FROM TABLE(TUMBLE(TABLE s, DESCRIPTOR(ts), INTERVAL '1' MINUTE))
GROUP BY window_start, window_end, k;
