-- plan: INNER JOIN b AS s json(b @ broker:9092) [bk STRING, bv INT, bts TIMESTAMP(3); no key] ON probe.pk = s.bk
-- with: probe_and_build
CREATE VIEW joined AS SELECT probe.pts, s.bv FROM probe JOIN LATERAL SNAPSHOT(input => TABLE b) AS s ON probe.pk = s.bk;
CREATE TABLE o (n BIGINT) WITH ('connector' = 'blackhole');
INSERT INTO o SELECT COUNT(*) FROM joined GROUP BY TUMBLE(pts, INTERVAL '1' MINUTE);
