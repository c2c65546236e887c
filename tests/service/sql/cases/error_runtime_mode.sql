-- error: expected streaming or batch
-- with: d_small s_key … out_bigint join_k
SET 'execution.runtime-mode' = 'automatic';
