-- error: FULL JOIN is not supported
-- fixed: FULL OUTER JOIN => LEFT JOIN
-- with: d_priced s_all_types out_bigint
INSERT INTO o SELECT k FROM s FULL OUTER JOIN d FOR SYSTEM_TIME AS OF s.p ON s.k = d.id;
