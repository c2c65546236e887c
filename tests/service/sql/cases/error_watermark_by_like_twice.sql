-- error: table "s" has a WATERMARK already
-- fixed: LIKE s => LIKE s (OVERWRITING WATERMARKS)
-- with: d_since s_event_time out_bigint_string
CREATE TABLE e (WATERMARK FOR ts AS ts) WITH ('topic' = 'e') LIKE s;
INSERT INTO o SELECT s.k, d.name FROM s JOIN d FOR SYSTEM_TIME AS OF s.ts ON s.k = d.id;
