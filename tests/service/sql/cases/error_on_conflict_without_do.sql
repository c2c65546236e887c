-- error: expected DO, found "NOTHING"
-- fixed: NOTHING => DO DEDUPLICATE
-- with: s_key out_bigint
INSERT INTO o SELECT k FROM s ON CONFLICT NOTHING;
