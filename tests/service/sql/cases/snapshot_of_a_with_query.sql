-- plan: SELECT probe.pk AS pk, probe.pv AS pv, b.bk AS bk, (b.bv + 1) AS bv
-- with: probe_and_build
INSERT INTO sink WITH cte AS (SELECT bk, bv + 1 AS bv, bts FROM b) SELECT probe.pk, probe.pv, s.bk, s.bv FROM probe JOIN LATERAL TABLE(SNAPSHOT(input => TABLE cte, on_time => DESCRIPTOR(bts))) AS s ON probe.pk = s.bk;
