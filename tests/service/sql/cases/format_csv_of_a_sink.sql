-- plan: INTO o kafka(o @ broker:9092, key x of csv, csv(field-delimiter \t, write-bigdecimal-in-scientific-notation false))
-- with: d_small s_with_id
CREATE TABLE o (x BIGINT, l ARRAY<INT>) WITH ('connector' = 'kafka', 'topic' = 'o', 'properties.bootstrap.servers' = 'broker:9092',
    'format' = 'csv', 'csv.field-delimiter' = '\t', 'csv.write-bigdecimal-in-scientific-notation' = 'false',
    'key.format' = 'csv', 'key.fields' = 'x');
INSERT INTO o SELECT s.k, CAST(NULL AS ARRAY<INT>) FROM s JOIN d FOR SYSTEM_TIME AS OF s.p ON s.k = d.id;
