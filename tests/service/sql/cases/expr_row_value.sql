-- plan: SELECT (ROW(s.k, s.n) = CAST(ROW(1, 2) AS ROW<`EXPR$0` BIGINT, `EXPR$1` INT>)) AS x
-- with: d_priced s_all_types out_boolean
INSERT INTO o SELECT (k, n) = (1, 2)
FROM s JOIN d FOR SYSTEM_TIME AS OF s.p ON s.k = d.id;
