-- error: RE2 cannot match the regular expression: (?=b
-- fixed: (?=b) => b
-- with: d_priced s_all_types out_string
INSERT INTO o SELECT REGEXP_EXTRACT(t, 'a(?=b)')
FROM s JOIN d FOR SYSTEM_TIME AS OF s.p ON s.k = d.id;
