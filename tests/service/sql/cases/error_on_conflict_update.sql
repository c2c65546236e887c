-- error: expected ERROR or NOTHING or DEDUPLICATE
-- fixed: DO UPDATE => DO DEDUPLICATE
-- with: s_key out_bigint
INSERT INTO o SELECT k FROM s ON CONFLICT DO UPDATE;
