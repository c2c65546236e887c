-- plan: INNER JOIN c AS s json(c @ broker:9092) [bk STRING, bv INT, bts_str STRING; no key] ON probe.pk = s.bk
-- with: probe_and_build
CREATE TABLE c (bk STRING, bv INT, bts_str STRING, bts AS TO_TIMESTAMP(bts_str), WATERMARK FOR bts AS bts) WITH ('connector' = 'kafka', 'topic' = 'c', 'properties.bootstrap.servers' = 'broker:9092', 'format' = 'json');
INSERT INTO sink SELECT probe.pk, probe.pv, s.bk, s.bv FROM probe JOIN LATERAL SNAPSHOT(input => TABLE c, on_time => DESCRIPTOR(bts)) AS s ON probe.pk = s.bk;
