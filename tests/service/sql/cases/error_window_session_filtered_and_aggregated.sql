-- error: WHERE follows SESSION, whose windows include all rows
-- fixed: INSERT INTO o => CREATE VIEW v AS SELECT * FROM s WHERE n > 5; INSERT INTO o
-- fixed: TABLE s PARTITION => TABLE v PARTITION
-- fixed: WHERE n > 5 GROUP => GROUP
-- with: s_event_time out_at_bigint
INSERT INTO o SELECT window_end, COUNT(*) FROM TABLE(SESSION(TABLE s PARTITION BY k, DESCRIPTOR(ts), INTERVAL '1' HOUR)) WHERE n > 5 GROUP BY window_start, window_end, k;
