-- error: argument state_ttl of SNAPSHOT is given twice
-- fixed: , state_ttl=>INTERVAL '1' DAY => 
-- with: probe_and_build
INSERT INTO sink SELECT probe.pk, probe.pv, s.bk, s.bv FROM probe JOIN LATERAL SNAPSHOT(input=>TABLE b, state_ttl=>INTERVAL '1' DAY, state_ttl=>INTERVAL '1' DAY) AS s ON probe.pk = s.bk;
