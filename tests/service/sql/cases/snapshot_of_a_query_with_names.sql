-- plan: INNER JOIN b AS b json(b @ broker:9092) [bk STRING, bv INT, bts TIMESTAMP(3); no key] ON probe.pk = b.bk AND (b.bv > 0)
-- with: probe_and_build
INSERT INTO sink SELECT probe.pk, probe.pv, s.bk, s.bv FROM probe JOIN LATERAL SNAPSHOT(input => TABLE (SELECT bk, bv FROM b WHERE bv > 0)) AS s (bk, bv) ON probe.pk = s.bk;
