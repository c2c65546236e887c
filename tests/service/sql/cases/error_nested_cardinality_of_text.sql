-- error: CARDINALITY takes an ARRAY or a MAP
-- fixed: CARDINALITY => CHAR_LENGTH
-- with: d_named s_nested out_int
INSERT INTO o SELECT CARDINALITY(d.name) FROM s JOIN d FOR SYSTEM_TIME AS OF s.p ON s.k = d.id;
