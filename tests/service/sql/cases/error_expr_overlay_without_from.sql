-- error: Write OVERLAY(text PLACING x FROM 1 FOR 3)
-- fixed: PLACING 'x' => PLACING 'x' FROM 1 FOR 3
-- with: d_priced s_all_types out_string
INSERT INTO o SELECT OVERLAY(t PLACING 'x')
FROM s JOIN d FOR SYSTEM_TIME AS OF s.p ON s.k = d.id;
