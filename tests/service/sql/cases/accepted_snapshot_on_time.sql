-- warning: Argument on_time of SNAPSHOT over "b" has no effect: a change counts once it is committed, in the order of its source.
-- with: probe_and_build
INSERT INTO sink SELECT probe.pk, probe.pv, s.bk, s.bv FROM probe JOIN LATERAL SNAPSHOT(input => TABLE b, on_time => DESCRIPTOR(bts)) AS s ON probe.pk = s.bk;
