-- error: longer than 10,000 years
-- fixed: '99999999999' DAY => '2' DAY
-- with: d_since s_event_time out_timestamp
INSERT INTO o SELECT ts - INTERVAL '99999999999' DAY FROM s JOIN d FOR SYSTEM_TIME AS OF s.p ON s.k = d.id;
