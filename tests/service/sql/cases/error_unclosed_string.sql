-- error: is not closed
-- fixed: 'abc => CHAR_LENGTH('abc')
-- with: d_small s_key out_bigint
INSERT INTO o SELECT 'abc
FROM s JOIN d FOR SYSTEM_TIME AS OF s.p ON s.k = d.id;
