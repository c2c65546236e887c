-- error: table "d" has WATERMARK FOR, but files keep no versions of a row
-- fixed: , WATERMARK FOR ts AS ts =>
-- with: s_key out_bigint
CREATE TABLE d (id BIGINT, ts TIMESTAMP(3), PRIMARY KEY (id) NOT ENFORCED, WATERMARK FOR ts AS ts) WITH ('connector' = 'filesystem', 'path' = 'd', 'format' = 'json');
INSERT INTO o SELECT s.k
FROM s JOIN d FOR SYSTEM_TIME AS OF s.p ON s.k = d.id;
