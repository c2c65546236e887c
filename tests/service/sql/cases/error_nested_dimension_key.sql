-- error: column "address" of the primary key is ROW<`city` STRING>
-- fixed: PRIMARY KEY (address) => PRIMARY KEY (id)
-- with: s_city
CREATE TABLE d (id BIGINT, address ROW<city STRING>, PRIMARY KEY (address) NOT ENFORCED) WITH ('connector' = 'delta', 'path' = 'd');
CREATE TABLE o (a BIGINT) WITH ('connector' = 'blackhole');
INSERT INTO o SELECT d.id FROM s JOIN d FOR SYSTEM_TIME AS OF s.p ON s.k = d.id;
