-- error: key "d.since" is TIMESTAMP(3), compared with TIMESTAMP_LTZ(3)
-- fixed: s.inst = d => CAST(s.inst AS TIMESTAMP(3)) = d
-- with: d_priced s_all_types out_bigint
INSERT INTO o SELECT k FROM s JOIN d FOR SYSTEM_TIME AS OF s.p ON s.inst = d.since;
