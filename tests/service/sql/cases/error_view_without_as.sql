-- error: expected AS
-- fixed: VIEW v SELECT => VIEW v AS SELECT
-- with: d_price s_plain out_bigint_string
CREATE VIEW v SELECT k FROM s;
