-- error: column "m" is MAP<STRING, BIGINT>, which a csv cell cannot hold
-- fixed: 'csv' => 'json'
-- with: s_key … out_bigint join_k
CREATE TABLE d (id BIGINT, m MAP<STRING, BIGINT>) WITH ('connector' = 'filesystem', 'path' = 'd', 'format' = 'csv');
