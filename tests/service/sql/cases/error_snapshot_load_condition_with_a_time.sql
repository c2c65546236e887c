-- error: 'compile_time' of SNAPSHOT has a load_completed_time
-- fixed: load_completed_condition=>'compile_time',  => 
-- with: probe_and_build
INSERT INTO sink SELECT probe.pk, probe.pv, s.bk, s.bv FROM probe JOIN LATERAL SNAPSHOT(input=>TABLE b, load_completed_condition=>'compile_time', load_completed_time=>CAST(TIMESTAMP '2020-01-01 00:00:10' AS TIMESTAMP_LTZ(3))) AS s ON probe.pk = s.bk;
