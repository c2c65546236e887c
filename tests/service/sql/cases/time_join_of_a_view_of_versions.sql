-- plan: WATERMARK d.since AS since | INNER JOIN d AS d mysql-cdc(shop.d @ db:3306) [id BIGINT NOT NULL, name STRING, price DECIMAL(10, 2), since TIMESTAMP(3); key id] ON s.k = d.id AND (CAST(d.price AS DECIMAL(12, 2)) > 1:DECIMAL(12, 2)) AS OF s.ts
CREATE TABLE d (id BIGINT, name STRING, price DECIMAL(10, 2), since TIMESTAMP(3), PRIMARY KEY (id) NOT ENFORCED, WATERMARK FOR since AS since) WITH (
    'connector' = 'mysql-cdc', 'hostname' = 'db', 'username' = 'cdc', 'password' = '${secret:shop}',
    'database-name' = 'shop', 'table-name' = 'd'
);
CREATE TABLE s (k BIGINT, n INT, amount DECIMAL(8, 3), t STRING, ts TIMESTAMP(3), p AS PROCTIME(), WATERMARK FOR ts AS ts - INTERVAL '5' SECOND) WITH (
    'connector' = 'kafka', 'topic' = 's', 'properties.bootstrap.servers' = 'broker:9092', 'format' = 'json',
    'scan.startup.mode' = 'earliest-offset'
);
CREATE TABLE o (x BIGINT, y STRING) WITH ('connector' = 'blackhole');
CREATE VIEW v AS SELECT id, name, since FROM d WHERE price > 1;
INSERT INTO o SELECT s.k, v.name FROM s JOIN v FOR SYSTEM_TIME AS OF s.ts ON s.k = v.id;
