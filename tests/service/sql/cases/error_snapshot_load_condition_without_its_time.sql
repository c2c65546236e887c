-- error: 'user_time' of SNAPSHOT has no load_completed_time
-- fixed: , load_completed_condition=>'user_time' => 
-- with: probe_and_build
INSERT INTO sink SELECT probe.pk, probe.pv, s.bk, s.bv FROM probe JOIN LATERAL SNAPSHOT(input=>TABLE b, load_completed_condition=>'user_time') AS s ON probe.pk = s.bk;
