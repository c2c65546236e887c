-- error: column "k" twice
-- fixed: SELECT k, k => SELECT k, k AS k2
-- with: d_price s_plain out_bigint_string … join_name
CREATE VIEW v AS SELECT k, k FROM s;
