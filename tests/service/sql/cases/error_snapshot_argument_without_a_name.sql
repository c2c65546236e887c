-- error: SNAPSHOT has an argument without a name
-- fixed: DESCRIPTOR(bts) => on_time=>DESCRIPTOR(bts)
-- with: probe_and_build
INSERT INTO sink SELECT probe.pk, probe.pv, s.bk, s.bv FROM probe JOIN LATERAL SNAPSHOT(input=>TABLE b, DESCRIPTOR(bts)) AS s ON probe.pk = s.bk;
