-- error: a join behind ROW_NUMBER() of a window
-- fixed: AS q JOIN => AS q LEFT JOIN
-- with: s_event_time d_small out_at_bigint
INSERT INTO o SELECT window_start, d.id FROM (SELECT *, ROW_NUMBER() OVER (PARTITION BY window_start, window_end ORDER BY n) AS rn FROM TABLE(TUMBLE(TABLE s, DESCRIPTOR(ts), INTERVAL '1' MINUTE))) AS q JOIN d FOR SYSTEM_TIME AS OF q.p ON q.k = d.id WHERE rn <= 3;
