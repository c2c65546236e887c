-- error: SNAPSHOT has no input
-- fixed: (on_time => (input=>TABLE b, on_time
-- with: probe_and_build
INSERT INTO sink SELECT probe.pk, probe.pv, s.bk, s.bv FROM probe JOIN LATERAL SNAPSHOT(on_time=>DESCRIPTOR(bts)) AS s ON probe.pk = s.bk;
