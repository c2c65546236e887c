-- error: is mysql-cdc, which cannot be the stream
-- with: d_priced s_all_types out_bigint
INSERT INTO o SELECT id FROM d JOIN d FOR SYSTEM_TIME AS OF d.since AS z ON d.id = z.id;
