-- plan: ROW_NUMBER 1 TO 3 PARTITION BY window_start, window_end ORDER BY r0
-- with: s_event_time out_at_bigint
CREATE TABLE d (id BIGINT, name STRING, at_ TIMESTAMP(3), WATERMARK FOR at_ AS at_, PRIMARY KEY (id) NOT ENFORCED) WITH (
    'connector' = 'upsert-kafka', 'topic' = 'd', 'properties.bootstrap.servers' = 'broker:9092', 'key.format' = 'json', 'value.format' = 'json'
);
INSERT INTO o SELECT window_start, d.id FROM (SELECT *, ROW_NUMBER() OVER (PARTITION BY window_start, window_end ORDER BY n) AS rn FROM TABLE(TUMBLE(TABLE s, DESCRIPTOR(ts), INTERVAL '1' MINUTE))) AS q LEFT JOIN d FOR SYSTEM_TIME AS OF q.ts ON q.k = d.id WHERE rn <= 3;
