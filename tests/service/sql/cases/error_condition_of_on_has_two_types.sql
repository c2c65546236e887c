-- error: ">" has operands of STRING and BIGINT
-- fixed: s.t > d.big => CAST(s.t AS BIGINT) > d.big
-- with: d_all_keys s_all_types out_bigint
INSERT INTO o SELECT s.k FROM s JOIN d FOR SYSTEM_TIME AS OF s.p ON s.k = d.big AND s.t > d.big;
