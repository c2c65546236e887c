-- warning: Option "scan.startup.mode" of table "s" has no effect on a dimension.
-- with: d_priced s_all_types out_bigint
INSERT INTO o SELECT s.k FROM s JOIN s FOR SYSTEM_TIME AS OF s.p AS z ON s.k = z.k;
