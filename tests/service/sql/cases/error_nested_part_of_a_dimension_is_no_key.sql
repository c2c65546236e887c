-- error: a key is a bare column of the dimension
-- fixed: ON s.city = d.address.city => ON s.k = d.id
CREATE TABLE d (
    id BIGINT, address ROW<city STRING, zip INT>, tags ARRAY<STRING>, prices MAP<STRING, ROW<amount DECIMAL(6, 2)>>,
    PRIMARY KEY (id) NOT ENFORCED
) WITH ('connector' = 'delta', 'path' = 'd');
CREATE TABLE s (k BIGINT, city STRING, p AS PROCTIME()) WITH (
    'connector' = 'kafka', 'topic' = 's', 'properties.bootstrap.servers' = 'broker:9092',
    'format' = 'json', 'scan.startup.mode' = 'earliest-offset'
);
CREATE TABLE o (a STRING) WITH ('connector' = 'blackhole');
INSERT INTO o SELECT d.tags[1] FROM s JOIN d FOR SYSTEM_TIME AS OF s.p ON s.city = d.address.city;
