-- error: malformed INTERVAL of MINUTE TO SECOND
-- fixed: 1:75 => 1:30
-- with: d_since s_event_time out_timestamp
INSERT INTO o SELECT ts - INTERVAL '1:75' MINUTE TO SECOND FROM s JOIN d FOR SYSTEM_TIME AS OF s.p ON s.k = d.id;
