-- error: LIMIT is not supported here
-- fixed:  LIMIT 3 =>  WHERE s.k < 3
-- with: d_price s_plain out_bigint_string
INSERT INTO o SELECT s.k, d.name FROM s JOIN d FOR SYSTEM_TIME AS OF s.p ON s.k = d.id LIMIT 3;
