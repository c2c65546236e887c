-- error: FLOOR TO MONTH takes a date or a TIMESTAMP
-- fixed: TO MONTH => TO HOUR
-- with: d_priced s_all_types
CREATE TABLE o (x TIME) WITH ('connector' = 'blackhole');
INSERT INTO o SELECT FLOOR(tm TO MONTH)
FROM s JOIN d FOR SYSTEM_TIME AS OF s.p ON s.k = d.id;
