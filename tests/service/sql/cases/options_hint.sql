-- plan: FROM s AS c kafka(s @ broker:9092, timestamp, 42 ms) [k BIGINT, n INT, t STRING, p = PROCTIME()] | LOOKUP d BY broadcast (option of the table)
-- with: d_price s_plain out_bigint_string
INSERT INTO o SELECT c.k, d.name FROM s /*+ OPTIONS('scan.startup.mode' = 'timestamp', 'scan.startup.timestamp-millis' = '42') */ AS c JOIN d /*+ OPTIONS('lookup.strategy'='broadcast') */ FOR SYSTEM_TIME AS OF c.p ON c.k = d.id;
