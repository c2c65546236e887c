-- error: column "ys" is STRING, and csv has neither quotes nor escapes
-- fixed: 'csv.disable-quote-character' = 'true' => 'csv.disable-quote-character' = 'true', 'csv.escape-character' = '\'
-- with: d_small s_with_id
CREATE TABLE o (ys STRING) WITH ('connector' = 'kafka', 'topic' = 'o', 'properties.bootstrap.servers' = 'broker:9092',
    'format' = 'csv', 'csv.disable-quote-character' = 'true');
INSERT INTO o SELECT d.name FROM s JOIN d FOR SYSTEM_TIME AS OF s.p ON s.k = d.id;
