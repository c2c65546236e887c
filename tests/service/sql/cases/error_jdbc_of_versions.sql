-- error: table "d" has WATERMARK FOR, but is read again and again, and lacks the versions between two reads
-- with: orders out_id_name
CREATE TABLE d (id BIGINT, name STRING, at TIMESTAMP(3), WATERMARK FOR at AS at, PRIMARY KEY (id) NOT ENFORCED) WITH ('connector' = 'jdbc', 'url' = 'jdbc:postgresql://db/shop', 'username' = 'u', 'password' = '${secret:x}', 'table-name' = 'd');
CREATE TABLE e (id BIGINT, user_id BIGINT, ts TIMESTAMP(3), WATERMARK FOR ts AS ts) WITH ('connector' = 'kafka', 'topic' = 'e', 'properties.bootstrap.servers' = 'broker:9092', 'scan.startup.mode' = 'earliest-offset', 'format' = 'json');
INSERT INTO o SELECT e.id, d.name FROM e JOIN d FOR SYSTEM_TIME AS OF e.ts ON e.user_id = d.id;
