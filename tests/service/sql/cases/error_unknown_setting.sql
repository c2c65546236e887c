-- error: Did you mean "pipeline.name"?
-- with: d_small s_key … out_bigint join_k
SET 'pipeline.nam' = 'x';
