-- error: a key is a bare column of the dimension
-- fixed: ON s.city = d.address.city => ON s.k = d.id
-- with: d_nested s_city
CREATE TABLE o (a STRING) WITH ('connector' = 'blackhole');
INSERT INTO o SELECT d.tags[1] FROM s JOIN d FOR SYSTEM_TIME AS OF s.p ON s.city = d.address.city;
