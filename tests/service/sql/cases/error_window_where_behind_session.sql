-- error: WHERE follows SESSION
-- fixed: TABLE s, => TABLE many,
-- fixed: WHERE n > 1 GROUP => GROUP
-- fixed: INSERT INTO => CREATE VIEW many AS SELECT * FROM s WHERE n > 1; INSERT INTO
-- with: s_event_time out_at_bigint
INSERT INTO o SELECT window_start, COUNT(*)
FROM TABLE(SESSION(TABLE s, DESCRIPTOR(ts), INTERVAL '5' MINUTE))
WHERE n > 1 GROUP BY window_start, window_end;
