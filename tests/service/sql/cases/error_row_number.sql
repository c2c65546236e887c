-- error: ROW_NUMBER() over a stream keeps the row of each key that its order puts first, whenever it comes
-- fixed: , ROW_NUMBER() OVER (PARTITION BY id ORDER BY ts DESC) AS n => 
-- fixed:  WHERE n = 1 => 
-- with: orders
CREATE TABLE k (id BIGINT, currency STRING, PRIMARY KEY (id) NOT ENFORCED) WITH ('connector' = 'upsert-kafka', 'topic' = 'k', 'properties.bootstrap.servers' = 'b:1', 'key.format' = 'json', 'value.format' = 'json');
CREATE VIEW v AS SELECT id, currency, ROW_NUMBER() OVER (PARTITION BY id ORDER BY ts DESC) AS n FROM orders;
INSERT INTO k SELECT id, currency FROM v WHERE n = 1;
