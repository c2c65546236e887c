-- error: SNAPSHOT has too many arguments
-- fixed: , 1) => )
-- with: probe_and_build
INSERT INTO sink SELECT probe.pk, probe.pv, s.bk, s.bv FROM probe JOIN LATERAL SNAPSHOT(TABLE b, DESCRIPTOR(bts), CAST(TIMESTAMP '2020-01-01 00:00:10' AS TIMESTAMP_LTZ(3)), INTERVAL '1' DAY, INTERVAL '1' DAY, 1) AS s ON probe.pk = s.bk;
