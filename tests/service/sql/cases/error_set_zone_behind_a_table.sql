-- error: is set after a table
-- fixed: SET 'table.local-time-zone' = 'Asia/Tokyo'; => 
-- with: d_priced s_all_types out_string
SET 'table.local-time-zone' = 'Asia/Tokyo';
INSERT INTO o SELECT t
FROM s JOIN d FOR SYSTEM_TIME AS OF s.p ON s.k = d.id;
