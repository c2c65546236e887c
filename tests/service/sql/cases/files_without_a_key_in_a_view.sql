-- plan: LEFT JOIN d AS d filesystem(d, json, read once) [id BIGINT, name STRING; no key] ON s.k = d.id | SELECT s.k AS x, CASE WHEN (d._source_partition IS NOT NULL) THEN COALESCE(d.name, 'nobody') END AS name
CREATE TABLE d (id BIGINT, name STRING) WITH ('connector' = 'filesystem', 'path' = 'd', 'format' = 'json');
CREATE VIEW v AS SELECT id, COALESCE(name, 'nobody') AS name FROM d;
CREATE TABLE s (k BIGINT, p AS PROCTIME()) WITH (
    'connector' = 'kafka', 'topic' = 's', 'properties.bootstrap.servers' = 'broker:9092', 'format' = 'json',
    'scan.startup.mode' = 'earliest-offset'
);
CREATE TABLE o (x BIGINT, name STRING) WITH ('connector' = 'blackhole');
INSERT INTO o SELECT s.k, v.name
FROM s LEFT JOIN v FOR SYSTEM_TIME AS OF s.p ON s.k = v.id;
