-- error: is a view, which has no options
-- fixed: LIKE v => LIKE s
-- with: d_price s_plain out_bigint_string
CREATE VIEW v AS SELECT k, p FROM s;
CREATE TABLE w LIKE v;
