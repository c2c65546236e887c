-- plan: CROSS JOIN UNNEST(WINDOW_PLACES(s.ts, 3600000:BIGINT, 60000:BIGINT, 0:BIGINT, true)) AS $windows | SELECT $windows.element AS at, s.k AS x
-- with: s_event_time out_at_bigint
INSERT INTO o SELECT window_end, k
FROM TABLE(CUMULATE(TABLE s, DESCRIPTOR(ts), INTERVAL '1' MINUTE, INTERVAL '1' HOUR));
