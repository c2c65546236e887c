-- error: is neither 'compile_time' nor 'user_time'
-- fixed: , load_completed_condition=>CAST(CURRENT_TIMESTAMP AS STRING) => 
-- with: probe_and_build
INSERT INTO sink SELECT probe.pk, probe.pv, s.bk, s.bv FROM probe JOIN LATERAL SNAPSHOT(input=>TABLE b, load_completed_condition=>CAST(CURRENT_TIMESTAMP AS STRING)) AS s ON probe.pk = s.bk;
