-- error: names 2 columns, its query has 1
-- fixed: v (a, b) => v
-- with: d_price s_plain out_bigint_string … join_name
CREATE VIEW v (a, b) AS SELECT k FROM s;
