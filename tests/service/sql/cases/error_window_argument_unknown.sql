-- error: Did you mean "SIZE"?
-- with: s_event_time out_at_bigint
INSERT INTO o SELECT window_start, COUNT(*)
FROM TABLE(TUMBLE(DATA => TABLE s, TIMECOL => DESCRIPTOR(ts), SIZ => INTERVAL '1' MINUTE))
GROUP BY window_start, window_end;
