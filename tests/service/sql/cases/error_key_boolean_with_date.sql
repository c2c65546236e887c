-- error: There is no cast from BOOLEAN to DATE
-- fixed: s.ok = d.day_ => s.dt = d.day_
-- with: d_all_keys s_all_types out_bigint
INSERT INTO o SELECT s.k FROM s JOIN d FOR SYSTEM_TIME AS OF s.p ON s.ok = d.day_;
