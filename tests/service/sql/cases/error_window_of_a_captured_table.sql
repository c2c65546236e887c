-- error: the records of table "d" are changes of rows, and a window cannot take back a row that it has counted
-- fixed: TABLE d, DESCRIPTOR(since) => TABLE s, DESCRIPTOR(ts)
-- with: d_versions s_event_time out_at_bigint
INSERT INTO o SELECT window_start, COUNT(*)
FROM TABLE(TUMBLE(TABLE d, DESCRIPTOR(since), INTERVAL '1' MINUTE))
GROUP BY window_start, window_end;
