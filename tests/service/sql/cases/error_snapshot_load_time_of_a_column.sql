-- error: load_completed_time of SNAPSHOT is not a constant
-- fixed: load_completed_time=>bts => load_completed_time=>CAST(TIMESTAMP '2020-01-01 00:00:10' AS TIMESTAMP_LTZ(3))
-- with: probe_and_build
INSERT INTO sink SELECT probe.pk, probe.pv, s.bk, s.bv FROM probe JOIN LATERAL SNAPSHOT(input=>TABLE b, load_completed_time=>bts) AS s ON probe.pk = s.bk;
