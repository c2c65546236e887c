-- error: not the stream's PROCTIME() column nor its rowtime
-- fixed: e.ts ON => e.p ON
-- with: d_since s_event_time out_bigint_string
CREATE TABLE e WITH ('topic' = 'e') LIKE s (EXCLUDING WATERMARKS);
INSERT INTO o SELECT e.k, d.name FROM e JOIN d FOR SYSTEM_TIME AS OF e.ts ON e.k = d.id;
