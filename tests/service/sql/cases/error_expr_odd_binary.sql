-- error: even number of digits
-- fixed: x'ABC' => x'0A'
-- with: d_priced s_all_types
CREATE TABLE o (x BYTES) WITH ('connector' = 'blackhole');
INSERT INTO o SELECT x'ABC'
FROM s JOIN d FOR SYSTEM_TIME AS OF s.p ON s.k = d.id;
