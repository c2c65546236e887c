-- error: state_ttl of SNAPSHOT is not a constant INTERVAL
-- fixed: INTERVAL '1' YEAR => INTERVAL '10' MINUTE
-- with: probe_and_build
INSERT INTO sink SELECT probe.pk, probe.pv, s.bk, s.bv FROM probe JOIN LATERAL SNAPSHOT(input=>TABLE b, state_ttl=>INTERVAL '1' YEAR) AS s ON probe.pk = s.bk;
