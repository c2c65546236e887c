-- error: column "ys" is ARRAY<STRING>, whose parts csv cannot separate
-- fixed: 'format' = 'csv' => 'format' = 'json'
-- with: d_small s_with_id
CREATE TABLE o (ys ARRAY<STRING>) WITH ('connector' = 'kafka', 'topic' = 'o', 'properties.bootstrap.servers' = 'broker:9092',
    'format' = 'csv');
INSERT INTO o SELECT CAST(NULL AS ARRAY<STRING>) FROM s JOIN d FOR SYSTEM_TIME AS OF s.p ON s.k = d.id;
