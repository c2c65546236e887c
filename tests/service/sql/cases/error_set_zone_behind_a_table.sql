-- error: is set behind a table
-- fixed: SET 'table.local-time-zone' = 'Asia/Tokyo'; => 
-- with: d_priced s_all_types
SET 'table.local-time-zone' = 'Asia/Tokyo';
CREATE TABLE o (x STRING) WITH ('connector' = 'blackhole');
INSERT INTO o SELECT t
FROM s JOIN d FOR SYSTEM_TIME AS OF s.p ON s.k = d.id;
