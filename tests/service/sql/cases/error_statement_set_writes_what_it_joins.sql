-- error: table "e" is both joined and written by the same job
-- fixed: 'e/' => 'f'
-- with: d_price s_plain out_bigint_string
CREATE TABLE e (id BIGINT PRIMARY KEY NOT ENFORCED, name STRING) WITH ('connector' = 'delta', 'path' = 'e');
CREATE TABLE f (x BIGINT, y STRING) WITH ('connector' = 'delta', 'path' = 'e/');
EXECUTE STATEMENT SET BEGIN
INSERT INTO o SELECT s.k, e.name FROM s JOIN e FOR SYSTEM_TIME AS OF s.p ON s.k = e.id;
INSERT INTO f SELECT s.k, d.name FROM s JOIN d FOR SYSTEM_TIME AS OF s.p ON s.k = d.id;
END;
