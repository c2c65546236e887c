-- error: must be 0 or 3
-- fixed: (k, 6) => (k, 3)
-- with: d_priced s_all_types
CREATE TABLE o (x TIMESTAMP_LTZ(3)) WITH ('connector' = 'blackhole');
INSERT INTO o SELECT TO_TIMESTAMP_LTZ(k, 6)
FROM s JOIN d FOR SYSTEM_TIME AS OF s.p ON s.k = d.id;
