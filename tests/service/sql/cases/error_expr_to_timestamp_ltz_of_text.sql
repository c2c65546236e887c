-- error: TO_TIMESTAMP_LTZ takes STRING, not INT
-- fixed: (t, 3) => (CAST(t AS BIGINT), 3)
-- with: d_priced s_all_types
CREATE TABLE o (x TIMESTAMP_LTZ(3)) WITH ('connector' = 'blackhole');
INSERT INTO o SELECT TO_TIMESTAMP_LTZ(t, 3)
FROM s JOIN d FOR SYSTEM_TIME AS OF s.p ON s.k = d.id;
