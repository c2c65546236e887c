-- error: column "ys" may have characters that US-ASCII cannot encode
-- fixed: 'raw.charset' = 'US-ASCII' => 'raw.charset' = 'UTF-8'
-- with: d_small s_with_id
CREATE TABLE o (ys STRING) WITH ('connector' = 'kafka', 'topic' = 'o', 'properties.bootstrap.servers' = 'broker:9092',
    'format' = 'raw', 'raw.charset' = 'US-ASCII');
INSERT INTO o SELECT d.name FROM s JOIN d FOR SYSTEM_TIME AS OF s.p ON s.k = d.id;
