-- plan: SELECT orders.id AS id, orders.currency AS name | INTO o blackhole()
CREATE TABLE orders (
    id BIGINT, user_id BIGINT, currency STRING, price DECIMAL(10, 2), items ARRAY<STRING>,
    ts TIMESTAMP(3), proc_time AS PROCTIME(), WATERMARK FOR ts AS ts - INTERVAL '5' SECOND
) WITH (
    'connector' = 'kafka', 'topic' = 'orders', 'properties.bootstrap.servers' = 'broker:9092',
    'format' = 'json', 'scan.startup.mode' = 'earliest-offset'
);
CREATE CATALOG mine WITH ('type' = 'generic_in_memory');
USE CATALOG mine;
CREATE TABLE o (id BIGINT, name STRING) WITH ('connector' = 'blackhole');
USE CATALOG default_catalog;
DROP DATABASE IF EXISTS old CASCADE;
INSERT INTO mine.default_database.o SELECT id, currency FROM default_catalog.default_database.orders;
