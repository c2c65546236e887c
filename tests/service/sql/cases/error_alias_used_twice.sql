-- error: alias "d" is used twice
-- fixed: JOIN d FOR SYSTEM_TIME AS OF s.p ON s.n = d.id => JOIN d FOR SYSTEM_TIME AS OF s.p AS other ON s.n = other.id
-- with: d_priced s_all_types out_bigint
INSERT INTO o SELECT k FROM s JOIN d FOR SYSTEM_TIME AS OF s.p ON s.k = d.id JOIN d FOR SYSTEM_TIME AS OF s.p ON s.n = d.id;
