-- plan: INNER JOIN d AS d delta(d, every 1000 ms) [id BIGINT NOT NULL, address ROW<`city` STRING, `zip` INT>, tags ARRAY<STRING>, prices MAP<STRING, ROW<`amount` DECIMAL(6, 2)>>; key id] ON s.k = d.id | SELECT d.address.city AS a, d.tags[1] AS b, d.prices['EUR'].amount:DECIMAL(6, 2) AS c, d.address AS d
-- with: d_nested s_city
CREATE TABLE o (a STRING, b STRING, c DECIMAL(6, 2), d ROW<city STRING, zip INT>) WITH ('connector' = 'blackhole');
INSERT INTO o SELECT d.address.city, d.tags[1], d.prices['EUR'].amount, address FROM s JOIN d FOR SYSTEM_TIME AS OF s.p ON s.k = d.id;
