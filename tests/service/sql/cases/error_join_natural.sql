-- error: NATURAL JOIN is not supported
-- fixed: NATURAL JOIN => JOIN
-- with: d_priced s_all_types out_bigint
INSERT INTO o SELECT k FROM s NATURAL JOIN d FOR SYSTEM_TIME AS OF s.p ON s.k = d.id;
