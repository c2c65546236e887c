-- plan: FROM s AS s kafka(s @ broker:9092, earliest-offset, until latest-offset or 10000 records a partition) [k BIGINT, n INT, t STRING, p = PROCTIME()] | INNER JOIN d AS d mysql-cdc(shop.d @ db:3306) [id BIGINT NOT NULL, name STRING, price DECIMAL(10, 2); key id] ON s.k = d.id | SELECT s.k AS k, d.name AS name, (s.n + 1) AS EXPR$2, s.k AS k0 | INTO preview print(, 100 rows)
-- with: d_price s_plain
SELECT s.k, d.name, n + 1, s.k FROM s JOIN d FOR SYSTEM_TIME AS OF s.p ON s.k = d.id;
