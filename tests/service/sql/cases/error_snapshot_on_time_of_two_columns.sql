-- error: on_time names two columns
-- fixed: , bv) => )
-- with: probe_and_build
INSERT INTO sink SELECT probe.pk, probe.pv, s.bk, s.bv FROM probe JOIN LATERAL SNAPSHOT(input=>TABLE b, on_time=>DESCRIPTOR(bts, bv)) AS s ON probe.pk = s.bk;
