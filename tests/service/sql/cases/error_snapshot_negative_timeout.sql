-- error: load_completed_idle_timeout of SNAPSHOT is not a constant INTERVAL
-- fixed: INTERVAL -'10' SECOND => INTERVAL '10' MINUTE
-- with: probe_and_build
INSERT INTO sink SELECT probe.pk, probe.pv, s.bk, s.bv FROM probe JOIN LATERAL SNAPSHOT(input=>TABLE b, load_completed_idle_timeout=>INTERVAL -'10' SECOND) AS s ON probe.pk = s.bk;
