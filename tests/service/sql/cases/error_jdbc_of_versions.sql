-- error: table "d" has WATERMARK FOR, but is read again and again, and lacks the versions between two reads
-- fixed: , WATERMARK FOR since AS since =>
-- with: s_event_time out_bigint_string … join_name_of_time
CREATE TABLE d (id BIGINT, name STRING, since TIMESTAMP(3), PRIMARY KEY (id) NOT ENFORCED, WATERMARK FOR since AS since) WITH ('connector' = 'jdbc', 'url' = 'jdbc:postgresql://db/shop', 'username' = 'u', 'password' = '${secret:x}', 'table-name' = 'd');
