-- error: SNAPSHOT is a table function of a join and stands behind LATERAL
-- fixed: FROM TABLE(SNAPSHOT(input=>TABLE b)) => FROM probe JOIN LATERAL SNAPSHOT(input=>TABLE b) AS d ON probe.pk = d.bk
-- with: probe_and_build
INSERT INTO sink SELECT pk, pv, bk, bv FROM TABLE(SNAPSHOT(input=>TABLE b));
