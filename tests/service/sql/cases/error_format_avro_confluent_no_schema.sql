-- error: the schema cannot be read
-- fixed: , 'avro-confluent.schema' = 'Order' => 
-- with: d_small s_with_id … join_name
CREATE TABLE o (k BIGINT, name STRING) WITH ('connector' = 'kafka', 'topic' = 'o', 'properties.bootstrap.servers' = 'broker:9092',
    'format' = 'avro-confluent', 'avro-confluent.url' = 'http://registry:8081', 'avro-confluent.schema' = 'Order');
