-- plan: INNER JOIN d AS d delta(d, every 1000 ms) [id BIGINT NOT NULL, address ROW<`city` STRING, `zip` INT>, tags ARRAY<STRING>, prices MAP<STRING, ROW<`amount` DECIMAL(6, 2)>>; key id] ON s.city = d.address.city
-- with: d_nested s_city
CREATE TABLE o (a STRING) WITH ('connector' = 'blackhole');
INSERT INTO o SELECT d.tags[1] FROM s JOIN d FOR SYSTEM_TIME AS OF s.p ON s.city = d.address.city;
