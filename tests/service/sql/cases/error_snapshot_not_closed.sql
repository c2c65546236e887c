-- error: expected ")"
-- fixed: b) AS => b)) AS
-- with: probe_and_build
INSERT INTO sink SELECT probe.pk, probe.pv, s.bk, s.bv FROM probe JOIN LATERAL TABLE(SNAPSHOT(input=>TABLE b) AS s ON probe.pk = s.bk;
