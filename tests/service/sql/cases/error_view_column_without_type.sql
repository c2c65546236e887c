-- error: column "x" without a type
-- with: d_price s_plain out_bigint_string … join_name
CREATE VIEW v AS SELECT NULL AS x FROM s;
