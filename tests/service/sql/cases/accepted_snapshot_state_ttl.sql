-- warning: Argument state_ttl of SNAPSHOT over "b" has no effect: no row of a dimension is removed by its age.
-- with: probe_and_build
INSERT INTO sink SELECT probe.pk, probe.pv, s.bk, s.bv FROM probe JOIN LATERAL SNAPSHOT(input => TABLE b, state_ttl => INTERVAL '1' DAY) AS s ON probe.pk = s.bk;
