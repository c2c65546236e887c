-- error: table "d" has WATERMARK FOR, but files keep no versions of a row
-- fixed: , WATERMARK FOR ts AS ts =>
-- with: s_key out_bigint … join_k
CREATE TABLE d (id BIGINT, ts TIMESTAMP(3), PRIMARY KEY (id) NOT ENFORCED, WATERMARK FOR ts AS ts) WITH ('connector' = 'filesystem', 'path' = 'd', 'format' = 'json');
