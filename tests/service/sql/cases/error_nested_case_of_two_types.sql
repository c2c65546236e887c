-- error: CASE has operands of
-- fixed: ELSE labels => ELSE items
-- with: d_named s_nested out_bigint
INSERT INTO o SELECT CARDINALITY(CASE WHEN n > 1 THEN items ELSE labels END) FROM s JOIN d FOR SYSTEM_TIME AS OF s.p ON s.k = d.id;
