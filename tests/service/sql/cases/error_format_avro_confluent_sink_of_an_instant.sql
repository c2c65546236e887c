-- error: column "t" is TIMESTAMP_LTZ(3), and with timestamp_mapping.legacy Avro has only TIMESTAMP(3)
-- fixed: 'format' = 'avro-confluent' => 'format' = 'avro-confluent', 'avro-confluent.timestamp_mapping.legacy' = 'false'
-- with: d_small s_with_id
CREATE TABLE o (t TIMESTAMP_LTZ(3)) WITH ('connector' = 'kafka', 'topic' = 'o', 'properties.bootstrap.servers' = 'broker:9092',
    'format' = 'avro-confluent', 'avro-confluent.url' = 'http://registry:8081');
INSERT INTO o SELECT CAST(NULL AS TIMESTAMP_LTZ(3)) FROM s JOIN d FOR SYSTEM_TIME AS OF s.p ON s.k = d.id;
