-- error: Did you mean "SECOND"?
-- with: d_since s_event_time out_timestamp
INSERT INTO o SELECT ts - INTERVAL '5' SECNOD FROM s JOIN d FOR SYSTEM_TIME AS OF s.p ON s.k = d.id;
