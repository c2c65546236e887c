-- error: a column without a name
-- fixed: k + 1 FROM => k + 1 AS l FROM
-- with: d_price s_plain out_bigint_string … join_name
CREATE VIEW v AS SELECT k + 1 FROM s;
