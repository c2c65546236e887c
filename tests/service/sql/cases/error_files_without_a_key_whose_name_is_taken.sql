-- error: column name "_source_offset" is reserved for the changelog
-- fixed: _source_offset => source_offset
-- with: s_key … out_bigint join_k
CREATE TABLE d (id BIGINT, _source_offset STRING) WITH ('connector' = 'filesystem', 'path' = 'd', 'format' = 'json');
