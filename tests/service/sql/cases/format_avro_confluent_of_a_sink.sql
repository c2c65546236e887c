-- plan: INTO o kafka(o @ broker:9092, key k of avro-confluent(schemas https://keys:8081), avro-confluent(subject orders, schemas https://registry:8081))
-- with: d_small s_with_id … join_name
CREATE TABLE o (k BIGINT, name STRING) WITH ('connector' = 'kafka', 'topic' = 'o', 'properties.bootstrap.servers' = 'broker:9092',
    'value.format' = 'avro-confluent', 'value.avro-confluent.url' = 'https://registry:8081',
    'value.avro-confluent.basic-auth.credentials-source' = 'USER_INFO', 'value.avro-confluent.basic-auth.user-info' = 'me:hidden',
    'value.avro-confluent.subject' = 'orders', 'key.format' = 'avro-confluent', 'key.avro-confluent.url' = 'https://keys:8081',
    'key.avro-confluent.ssl.truststore.certificates' = '${secret:ca}', 'key.fields' = 'k');
