-- plan: INNER JOIN d AS d debezium-avro-confluent(shop.shop.d @ broker:9092, schemas https://registry:8081) [id BIGINT NOT NULL, name STRING; key id] ON s.k = d.id
CREATE TABLE d (id BIGINT, name STRING, PRIMARY KEY (id) NOT ENFORCED) WITH (
    'connector' = 'kafka', 'topic' = 'shop.shop.d', 'properties.bootstrap.servers' = 'broker:9092', 'format' = 'debezium-avro-confluent',
    'debezium-avro-confluent.url' = 'https://registry:8081', 'debezium-avro-confluent.basic-auth.credentials-source' = 'USER_INFO', 'debezium-avro-confluent.basic-auth.user-info' = '${secret:registry}',
    'debezium-avro-confluent.ssl.truststore.certificates' = '${secret:ca}', 'debezium-avro-confluent.ssl.keystore.certificate.chain' = '${secret:cert}', 'debezium-avro-confluent.ssl.keystore.key' = '${secret:key}'
);
CREATE TABLE s (k BIGINT, n INT, t STRING, p AS PROCTIME()) WITH (
    'connector' = 'kafka', 'topic' = 's', 'properties.bootstrap.servers' = 'broker:9092',
    'format' = 'json', 'scan.startup.mode' = 'earliest-offset'
);
CREATE TABLE o (x BIGINT, y STRING) WITH ('connector' = 'blackhole');
INSERT INTO o SELECT s.k, d.name FROM s JOIN d FOR SYSTEM_TIME AS OF s.p ON s.k = d.id;
