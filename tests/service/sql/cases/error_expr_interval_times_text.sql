-- error: "*" of an INTERVAL takes a number
-- fixed: DAY * t => DAY * n
-- with: d_priced s_all_types out_timestamp
INSERT INTO o SELECT ts + INTERVAL '1' DAY * t
FROM s JOIN d FOR SYSTEM_TIME AS OF s.p ON s.k = d.id;
