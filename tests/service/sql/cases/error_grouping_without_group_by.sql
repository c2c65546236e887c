-- error: function GROUPING is not supported
-- with: s_event_time out_at_bigint
INSERT INTO o SELECT ts, GROUPING(k) FROM s;
