-- error: SNAPSHOT has no argument "ttl"
-- fixed: , ttl=>INTERVAL '1' DAY => 
-- with: probe_and_build
INSERT INTO sink SELECT probe.pk, probe.pv, s.bk, s.bv FROM probe JOIN LATERAL SNAPSHOT(input=>TABLE b, ttl=>INTERVAL '1' DAY) AS s ON probe.pk = s.bk;
