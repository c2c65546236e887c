-- plan: LEFT JOIN d AS x json(d @ b:9092) [id BIGINT NOT NULL, code INT NOT NULL, name STRING; key id, code] ON s.code = x.code AND s.id = x.id | SELECT s.code AS code, s.id AS id, s.n AS n, s.p AS p, x.name AS name | WHERE (s.id > 3:BIGINT)
CREATE TABLE s (n INT, id BIGINT, code INT, p AS PROCTIME()) WITH ('connector' = 'kafka', 'topic' = 's', 'properties.bootstrap.servers' = 'b:9092', 'format' = 'json', 'scan.startup.mode' = 'earliest-offset');
CREATE TABLE d (id BIGINT, code INT, name STRING, PRIMARY KEY (id, code) NOT ENFORCED) WITH ('connector' = 'upsert-kafka', 'topic' = 'd', 'properties.bootstrap.servers' = 'b:9092', 'key.format' = 'json', 'value.format' = 'json');
SELECT * FROM s LEFT JOIN d FOR SYSTEM_TIME AS OF s.p AS x USING (code, id) WHERE id > 3;
