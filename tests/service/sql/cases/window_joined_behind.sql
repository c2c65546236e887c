-- plan: INNER JOIN d AS d mysql-cdc(shop.d @ db:3306) [id BIGINT NOT NULL, name STRING, price DECIMAL(10, 2), since TIMESTAMP(3); key id] ON s.k = d.id | WINDOW TUMBLE of s.ts, size 60000 ms | GROUP BY window_start, window_end | AGGREGATE COUNT(*):BIGINT AS a0 | SELECT window_start AS at, a0 AS x
-- with: d_since s_event_time out_at_bigint
INSERT INTO o SELECT window_start, COUNT(*)
FROM TABLE(TUMBLE(TABLE s, DESCRIPTOR(ts), INTERVAL '1' MINUTE))
JOIN d FOR SYSTEM_TIME AS OF s.p ON s.k = d.id GROUP BY window_start, window_end;
