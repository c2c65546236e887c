-- error: PROCTIME takes 0 arguments, not 1
-- fixed: PROCTIME(1) => PROCTIME()
-- with: d_priced s_all_types
CREATE TABLE o (x TIMESTAMP_LTZ(3)) WITH ('connector' = 'blackhole');
INSERT INTO o SELECT PROCTIME(1)
FROM s JOIN d FOR SYSTEM_TIME AS OF s.p ON s.k = d.id;
