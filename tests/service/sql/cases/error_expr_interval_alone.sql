-- error: is INTERVAL DAY TO SECOND, expected BIGINT
-- fixed: SELECT INTERVAL '1' DAY => SELECT ts - INTERVAL '1' DAY
-- fixed: (x BIGINT) => (x TIMESTAMP(3))
-- with: d_priced s_all_types out_bigint
INSERT INTO o SELECT INTERVAL '1' DAY
FROM s JOIN d FOR SYSTEM_TIME AS OF s.p ON s.k = d.id;
