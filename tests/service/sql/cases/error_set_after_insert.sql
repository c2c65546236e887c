-- error: a statement follows the INSERT INTO
-- fixed: SET 'pipeline.name' = 'x'; =>
-- with: d_small s_key out_bigint
INSERT INTO o SELECT s.k
FROM s JOIN d FOR SYSTEM_TIME AS OF s.p ON s.k = d.id;
SET 'pipeline.name' = 'x';
