-- error: a time of the year 1500 with more than 6 digits
-- fixed: .1234567' => .123456'
-- with: d_priced s_all_types
CREATE TABLE o (x TIMESTAMP(6)) WITH ('connector' = 'blackhole');
INSERT INTO o SELECT TIMESTAMP '1500-01-01 00:00:00.1234567'
FROM s JOIN d FOR SYSTEM_TIME AS OF s.p ON s.k = d.id;
