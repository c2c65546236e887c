-- error: INTERVAL has no SECOND TO MINUTE
-- fixed: '1:15' SECOND TO MINUTE => '5' SECOND
-- with: d_since s_event_time out_timestamp
INSERT INTO o SELECT ts - INTERVAL '1:15' SECOND TO MINUTE FROM s JOIN d FOR SYSTEM_TIME AS OF s.p ON s.k = d.id;
