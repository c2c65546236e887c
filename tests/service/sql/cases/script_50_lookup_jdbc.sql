-- warning: Table "people" is jdbc and is read as mysql-cdc: it is copied whole and follows the binlog, for which its user needs SELECT, REPLICATION SLAVE and REPLICATION CLIENT; with 'scan.refresh-interval' it is read again instead, with SELECT alone.
CREATE TABLE clicks (id BIGINT, uid BIGINT, proctime AS PROCTIME()) WITH ('connector' = 'kafka', 'topic' = 'clicks', 'properties.bootstrap.servers' = 'broker:9092', 'scan.startup.mode' = 'earliest-offset', 'format' = 'json');
CREATE TABLE people (id BIGINT, name STRING, PRIMARY KEY (id) NOT ENFORCED) WITH ('connector' = 'jdbc', 'url' = 'jdbc:mysql://db:3306/shop', 'table-name' = 'people', 'username' = 'u', 'password' = 'p', 'lookup.cache' = 'PARTIAL', 'lookup.partial-cache.max-rows' = '1000');
CREATE TABLE o (id BIGINT, name STRING) WITH ('connector' = 'print');
INSERT INTO o SELECT c.id, p.name FROM clicks c LEFT JOIN people FOR SYSTEM_TIME AS OF c.proctime AS p ON c.uid = p.id;
