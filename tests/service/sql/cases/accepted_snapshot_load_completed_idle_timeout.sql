-- warning: Argument load_completed_idle_timeout of SNAPSHOT over "b" has no effect: a source that is silent or slow does not begin the join, only the proof that its table is complete does.
-- with: probe_and_build
INSERT INTO sink SELECT probe.pk, probe.pv, s.bk, s.bv FROM probe JOIN LATERAL SNAPSHOT(input => TABLE b, load_completed_idle_timeout => INTERVAL '10' SECOND) AS s ON probe.pk = s.bk;
