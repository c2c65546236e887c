-- error: column "ys" is ARRAY<INT>, whose parts csv cannot separate
-- fixed: 'csv.array-element-delimiter' = '-' => 'csv.array-element-delimiter' = '|'
-- with: d_small s_with_id
CREATE TABLE o (ys ARRAY<INT>) WITH ('connector' = 'kafka', 'topic' = 'o', 'properties.bootstrap.servers' = 'broker:9092',
    'format' = 'csv', 'csv.array-element-delimiter' = '-');
INSERT INTO o SELECT CAST(NULL AS ARRAY<INT>) FROM s JOIN d FOR SYSTEM_TIME AS OF s.p ON s.k = d.id;
