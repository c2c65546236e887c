-- plan: HAVING ((a0 > 1:BIGINT) AND (a0 < 9:BIGINT)) | SELECT window_start AS at, (a0 + 1:BIGINT) AS x
-- with: s_event_time out_at_bigint
CREATE VIEW w AS SELECT window_start AS at, COUNT(*) AS found FROM TABLE(TUMBLE(TABLE s, DESCRIPTOR(ts), INTERVAL '1' MINUTE)) GROUP BY window_start, window_end HAVING COUNT(*) > 1;
INSERT INTO o SELECT at, found + 1 FROM w WHERE found < 9;
