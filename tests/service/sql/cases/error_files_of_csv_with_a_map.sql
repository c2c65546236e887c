-- error: column "m" is MAP<STRING, BIGINT>, which no cell of csv can be
-- fixed: 'csv' => 'json'
-- with: s_key … out_bigint join_k
CREATE TABLE d (id BIGINT, m MAP<STRING, BIGINT>) WITH ('connector' = 'filesystem', 'path' = 'd', 'format' = 'csv');
