-- error: column "x" without a type
-- fixed: NULL AS x => CAST(NULL AS STRING) AS x
-- with: d_price s_plain out_bigint_string … join_name
CREATE VIEW v AS SELECT NULL AS x FROM s;
