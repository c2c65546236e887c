-- error: A topic has the rows of one table: write db AS 'its name'.
-- fixed: db STRING METADATA FROM 'database_name' => db AS 'shop'
CREATE TABLE c (id BIGINT, db STRING METADATA FROM 'database_name', PRIMARY KEY (id) NOT ENFORCED) WITH ('connector' = 'kafka', 'topic' = 'c', 'properties.bootstrap.servers' = 'broker:9092', 'scan.startup.mode' = 'earliest-offset', 'format' = 'debezium-json');
CREATE TABLE o (x BIGINT, y STRING) WITH ('connector' = 'print');
INSERT INTO o SELECT id, db FROM c;
