-- plan: INSERT 1 | INNER JOIN d AS d mysql-cdc(shop.d @ db:3306) [id BIGINT NOT NULL, name STRING; key id] ON s.k = d.id | SELECT s.k AS x | INTO o blackhole() | INSERT 2 | INNER JOIN d AS d mysql-cdc(shop.d @ db:3306) [id BIGINT NOT NULL, name STRING; key id] ON s.k = d.id | SELECT s.k AS x | INTO o2 print()
-- with: d_small s_key out_bigint
INSERT INTO o SELECT s.k
FROM s JOIN d FOR SYSTEM_TIME AS OF s.p ON s.k = d.id;
CREATE TABLE o2 (x BIGINT) WITH ('connector' = 'print');
INSERT INTO o2 SELECT s.k
FROM s JOIN d FOR SYSTEM_TIME AS OF s.p ON s.k = d.id;
