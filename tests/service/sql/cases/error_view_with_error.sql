-- error: unknown column "kk" in "s"
-- with: d_price s_plain out_bigint_string … join_name
CREATE VIEW v AS SELECT s.kk FROM s;
