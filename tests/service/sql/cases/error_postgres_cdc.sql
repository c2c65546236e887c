-- error: unknown connector "postgres-cdc"
-- fixed: 'postgres-cdc', 'hostname' = 'db', 'schema-name' = 'shop' => 'kafka', 'format' = 'debezium-json', 'topic' = 'shop.shop.d', 'properties.bootstrap.servers' = 'broker:9092'
-- with: orders out_id_name
CREATE TABLE d (id BIGINT, name STRING, PRIMARY KEY (id) NOT ENFORCED) WITH ('connector' = 'postgres-cdc', 'hostname' = 'db', 'schema-name' = 'shop');
INSERT INTO o SELECT o.id, d.name FROM orders AS o JOIN d FOR SYSTEM_TIME AS OF o.proc_time ON o.user_id = d.id;
