-- error: one that has waited for a match could replace the row of a newer one
-- fixed:  /*+ OPTIONS('join.late-rows.wait' = '1 min') */ => 
-- with: d_small
CREATE TABLE s (k BIGINT, n INT, t STRING, items ARRAY<STRING>, p AS PROCTIME(), PRIMARY KEY (k) NOT ENFORCED) WITH (
    'connector' = 'upsert-kafka', 'topic' = 's', 'properties.bootstrap.servers' = 'broker:9092', 'key.format' = 'json', 'value.format' = 'json'
);
CREATE TABLE o (x BIGINT, y STRING) WITH ('connector' = 'print');
INSERT INTO o SELECT s.k, d.name FROM s JOIN d /*+ OPTIONS('join.late-rows.wait' = '1 min') */ FOR SYSTEM_TIME AS OF s.p ON s.n = d.id;
