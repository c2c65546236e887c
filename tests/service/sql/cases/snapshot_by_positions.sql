-- plan: INNER JOIN b AS s json(b @ broker:9092) [bk STRING, bv INT, bts TIMESTAMP(3); no key] ON probe.pk = s.bk
-- with: probe_and_build
INSERT INTO sink SELECT probe.pk, probe.pv, s.bk, s.bv FROM probe JOIN LATERAL SNAPSHOT(TABLE b, DESCRIPTOR(bts), CAST(TIMESTAMP '2020-01-01 00:00:10' AS TIMESTAMP_LTZ(3)), INTERVAL '10' SECOND, INTERVAL '1' DAY) AS s ON probe.pk = s.bk;
