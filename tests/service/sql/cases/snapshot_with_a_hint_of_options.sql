-- plan: INNER JOIN b AS s json(b2 @ broker:9092) [bk STRING, bv INT, bts TIMESTAMP(3); no key] ON probe.pk = s.bk
-- with: probe_and_build
INSERT INTO sink SELECT probe.pk, probe.pv, s.bk, s.bv FROM probe JOIN LATERAL SNAPSHOT(input => TABLE b /*+ OPTIONS('topic' = 'b2') */) AS s ON probe.pk = s.bk;
