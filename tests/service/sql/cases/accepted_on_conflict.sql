-- warning: ON CONFLICT of "o" has no effect: rows are written in the order of their batch, so that the newest row of a key is the one that is kept.
-- with: s_key out_bigint
INSERT INTO o SELECT k FROM s ON CONFLICT DO DEDUPLICATE;
