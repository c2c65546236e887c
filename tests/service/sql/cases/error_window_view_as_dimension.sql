-- error: view "w" has a window, so it cannot be a dimension
-- with: d_versions s_event_time out_at_bigint
CREATE VIEW w AS SELECT * FROM TABLE(TUMBLE(TABLE d, DESCRIPTOR(since), INTERVAL '1' MINUTE));
INSERT INTO o SELECT s.ts, s.k FROM s JOIN w FOR SYSTEM_TIME AS OF s.ts ON s.k = w.id;
