-- error: ON has no equality between "s" and the tables before it
-- fixed: ON probe.pv > s.bv => ON probe.pk = s.bk AND probe.pv > s.bv
-- with: probe_and_build
INSERT INTO sink SELECT probe.pk, probe.pv, s.bk, s.bv FROM probe JOIN LATERAL SNAPSHOT(input=>TABLE b) AS s ON probe.pv > s.bv;
