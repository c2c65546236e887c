-- plan: INTO k upsert-kafka(k @ b:1, key id) NOT NULL id
-- with: orders
CREATE TABLE k (id BIGINT, currency STRING, PRIMARY KEY (id) NOT ENFORCED) WITH ('connector' = 'upsert-kafka', 'topic' = 'k', 'properties.bootstrap.servers' = 'b:1', 'key.format' = 'json', 'value.format' = 'json');
CREATE VIEW v AS SELECT id, currency, proc_time FROM (SELECT *, ROW_NUMBER() OVER (PARTITION BY id ORDER BY proc_time DESC) AS n FROM orders) WHERE n <= 1;
CREATE TABLE rates (currency STRING, rate STRING, PRIMARY KEY (currency) NOT ENFORCED) WITH ('connector' = 'upsert-kafka', 'topic' = 'r', 'properties.bootstrap.servers' = 'b:1', 'key.format' = 'json', 'value.format' = 'json');
INSERT INTO k SELECT v.id, r.rate FROM v JOIN rates FOR SYSTEM_TIME AS OF v.proc_time AS r ON v.currency = r.currency;
