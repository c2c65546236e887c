-- plan: INNER JOIN d AS d mysql-cdc(shop.d @ db:3306) [id BIGINT NOT NULL, name STRING, price DECIMAL(10, 2), since TIMESTAMP(3); key id] ON s.k = d.id | SELECT WINDOW_START(s.ts, 60000:BIGINT, 0:BIGINT) AS at, s.k AS x
-- with: d_since s_event_time out_at_bigint
CREATE VIEW w AS SELECT * FROM TABLE(TUMBLE(TABLE s, DESCRIPTOR(ts), INTERVAL '1' MINUTE));
INSERT INTO o SELECT w.window_start, w.k FROM w JOIN d FOR SYSTEM_TIME AS OF w.p ON w.k = d.id;
