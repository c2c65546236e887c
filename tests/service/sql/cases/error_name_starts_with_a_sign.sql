-- error: unexpected "$k"
-- fixed: $k => k
-- with: s_key out_bigint
INSERT INTO o SELECT $k FROM s;
