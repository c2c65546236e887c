-- error: expected 100 ms to 1 h
-- with: d_small s_key … out_bigint join_k
SET 'sluice.trigger-interval' = '50 ms';
