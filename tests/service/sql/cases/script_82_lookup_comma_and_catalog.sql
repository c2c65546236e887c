-- plan: INNER JOIN people AS p mysql-cdc(shop.people @ db:3306) [id BIGINT NOT NULL, name STRING; key id] ON s.uid = p.id | SELECT s.id AS id, p.name AS name | INTO o print()
CREATE CATALOG my_catalog WITH ('type' = 'generic_in_memory');
USE CATALOG my_catalog;
CREATE DATABASE shop;
CREATE TABLE shop.orders (id BIGINT, uid BIGINT, pt AS PROCTIME()) COMMENT 'orders' WITH ('connector' = 'kafka', 'topic' = 'orders', 'properties.bootstrap.servers' = 'broker:9092', 'scan.startup.mode' = 'earliest-offset', 'format' = 'json');
CREATE TABLE shop.people (id BIGINT, name STRING, PRIMARY KEY (id) NOT ENFORCED) WITH ('connector' = 'mysql-cdc', 'hostname' = 'db', 'username' = 'cdc', 'password' = '${secret:db}', 'database-name' = 'shop', 'table-name' = 'people');
CREATE TABLE shop.o (id BIGINT, name STRING) WITH ('connector' = 'print');
INSERT INTO my_catalog.shop.o SELECT s.id, p.name FROM my_catalog.shop.orders AS s JOIN shop.people FOR SYSTEM_TIME AS OF s.pt AS p ON s.uid = p.id;
