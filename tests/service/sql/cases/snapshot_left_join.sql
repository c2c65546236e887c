-- plan: LEFT JOIN b AS s json(b @ broker:9092) [bk STRING, bv INT, bts TIMESTAMP(3); no key] ON probe.pk = s.bk
-- with: probe_and_build
INSERT INTO sink SELECT probe.pk, probe.pv, s.bk, s.bv FROM probe LEFT JOIN LATERAL SNAPSHOT(input => TABLE b, on_time => DESCRIPTOR(bts), load_completed_time => CAST(TIMESTAMP '2020-01-01 00:00:10' AS TIMESTAMP_LTZ(3))) AS s ON probe.pk = s.bk;
