-- plan: FROM s AS w kafka(s @ broker:9092, latest-offset) [k BIGINT, n INT, amount DECIMAL(8, 3), t STRING, ts TIMESTAMP(3), p = PROCTIME()] | SELECT window_start AS at, k0 AS x
-- with: s_event_time out_at_bigint
INSERT INTO o SELECT w.window_start, w.k
FROM TABLE(TUMBLE(TABLE s /*+ OPTIONS('scan.startup.mode' = 'latest-offset') */, DESCRIPTOR(ts), INTERVAL '1' MINUTE)) AS w GROUP BY w.window_start, w.window_end, w.k;
