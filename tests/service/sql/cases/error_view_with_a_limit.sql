-- error: LIMIT is not supported here
-- with: d_price s_plain out_bigint_string … join_name
CREATE VIEW v AS SELECT k FROM s LIMIT 3;
