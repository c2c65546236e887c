-- error: "+" with an INTERVAL takes a time, not INT
-- fixed: n + => TO_TIMESTAMP_LTZ(n, 3) +
-- fixed: (x TIMESTAMP(3)) => (x TIMESTAMP_LTZ(3))
-- with: d_priced s_all_types out_timestamp
INSERT INTO o SELECT n + INTERVAL '1' DAY
FROM s JOIN d FOR SYSTEM_TIME AS OF s.p ON s.k = d.id;
