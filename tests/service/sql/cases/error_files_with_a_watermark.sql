-- error: table "d" has WATERMARK FOR, but files keep no versions of a row
-- fixed: , WATERMARK FOR since AS since =>
-- with: s_event_time out_bigint_string … join_name_of_time
CREATE TABLE d (id BIGINT, name STRING, since TIMESTAMP(3), PRIMARY KEY (id) NOT ENFORCED, WATERMARK FOR since AS since) WITH ('connector' = 'filesystem', 'path' = 'd', 'format' = 'json');
