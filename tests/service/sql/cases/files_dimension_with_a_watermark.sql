-- plan: INNER JOIN d AS d filesystem(d, json, read once) [id BIGINT NOT NULL, ts TIMESTAMP(3); key id] ON s.k = d.id
-- with: s_key out_bigint … join_k
CREATE TABLE d (id BIGINT, ts TIMESTAMP(3), PRIMARY KEY (id) NOT ENFORCED, WATERMARK FOR ts AS ts) WITH ('connector' = 'filesystem', 'path' = 'd', 'format' = 'json');
