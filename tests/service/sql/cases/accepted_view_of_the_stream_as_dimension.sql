-- warning: Option "scan.startup.mode" of table "s" has no effect on a dimension.
-- with: d_price s_plain out_bigint_string
CREATE VIEW v AS SELECT k, p FROM s;
INSERT INTO o SELECT s.k, s.t FROM s JOIN v FOR SYSTEM_TIME AS OF s.p ON s.k = v.k;
