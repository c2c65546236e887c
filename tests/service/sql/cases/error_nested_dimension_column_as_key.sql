-- error: key "d.address" takes no ROW<
-- fixed: ROW(s.city, 1) = d.address => s.city = d.address.city AND s.k = d.id
-- with: d_nested s_city
CREATE TABLE o (a BIGINT) WITH ('connector' = 'blackhole');
INSERT INTO o SELECT d.id FROM s JOIN d FOR SYSTEM_TIME AS OF s.p ON ROW(s.city, 1) = d.address;
