-- error: malformed number
-- fixed: . 5 => .5
-- with: d_priced s_all_types out_bigint
INSERT INTO o SELECT k FROM s JOIN d FOR SYSTEM_TIME AS OF s.p ON s.k = d.id WHERE price > . 5;
