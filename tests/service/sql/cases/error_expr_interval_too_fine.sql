-- error: finer than a millisecond
-- fixed: 0.0001 => 0.001
-- with: d_since s_event_time out_timestamp
INSERT INTO o SELECT ts - INTERVAL '0.0001' SECOND FROM s JOIN d FOR SYSTEM_TIME AS OF s.p ON s.k = d.id;
