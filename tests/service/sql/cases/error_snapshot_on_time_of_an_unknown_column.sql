-- error: which is no column of "b"
-- fixed: DESCRIPTOR(btz) => DESCRIPTOR(bts)
-- with: probe_and_build
INSERT INTO sink SELECT probe.pk, probe.pv, s.bk, s.bv FROM probe JOIN LATERAL SNAPSHOT(input=>TABLE b, on_time=>DESCRIPTOR(btz)) AS s ON probe.pk = s.bk;
