-- error: setting "pipeline.name" is
-- fixed: ${env:HOME} => name
-- with: d_small s_key … out_bigint join_k
SET 'pipeline.name' = '${env:HOME}';
