-- error: each side has columns of one table alone
-- fixed: d.id + s.n => d.id + 1
-- with: d_price s_plain out_bigint_string
INSERT INTO o SELECT s.k, d.name FROM s JOIN d FOR SYSTEM_TIME AS OF s.p ON d.id + s.n = s.k;
