-- warning: Argument load_completed_condition of SNAPSHOT over "b" has no effect: the join begins when the source has proved its table complete.
-- with: probe_and_build
INSERT INTO sink SELECT probe.pk, probe.pv, s.bk, s.bv FROM probe JOIN LATERAL SNAPSHOT(input => TABLE b, load_completed_condition => 'compile_time') AS s ON probe.pk = s.bk;
