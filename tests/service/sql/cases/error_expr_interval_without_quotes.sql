-- error: expected a text in single quotes
-- fixed: INTERVAL 5 => INTERVAL '5'
-- with: d_since s_event_time out_timestamp
INSERT INTO o SELECT ts - INTERVAL 5 SECOND FROM s JOIN d FOR SYSTEM_TIME AS OF s.p ON s.k = d.id;
