-- error: is mysql-cdc, which cannot be written
-- fixed: INTO d => INTO o
-- with: d_priced s_all_types out_bigint
INSERT INTO d SELECT k FROM s JOIN d FOR SYSTEM_TIME AS OF s.p ON s.k = d.id;
