-- error: Did you mean "scan.startup.mode"?
-- with: d_price s_plain out_bigint_string
INSERT INTO o SELECT s.k, d.name FROM s /*+ OPTIONS('scan.startup.mod'='latest-offset') */ JOIN d FOR SYSTEM_TIME AS OF s.p ON s.k = d.id;
