-- error: SNAPSHOT is a table function of a join and stands behind LATERAL
-- fixed: JOIN SNAPSHOT => JOIN LATERAL SNAPSHOT
-- with: probe_and_build
INSERT INTO sink SELECT probe.pk, probe.pv, s.bk, s.bv FROM probe JOIN SNAPSHOT(input=>TABLE b) AS s ON probe.pk = s.bk;
