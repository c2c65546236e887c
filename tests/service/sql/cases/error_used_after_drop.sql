-- error: unknown table "d"
-- fixed: DROP TABLE d; => 
-- with: d_price s_plain out_bigint_string … join_name
DROP TABLE d;
