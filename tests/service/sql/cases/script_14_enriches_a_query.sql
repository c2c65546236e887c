-- plan: INNER JOIN users AS S mysql-cdc(shop.users @ db:3306) [user_id BIGINT NOT NULL, full_name STRING, country STRING, is_active BOOLEAN; key user_id] ON CAST(CAST((bare.user_id % 10000:BIGINT) AS INT) AS BIGINT) = S.user_id | SELECT bare.id AS id, S.full_name AS full_name | INTO enriched delta(enriched)
CREATE TABLE bare (
    id BIGINT,
    user_id BIGINT
) WITH (
    'connector' = 'kafka',
    'topic' = 'bare',
    'properties.bootstrap.servers' = 'broker:9092',
    'scan.startup.mode' = 'earliest-offset',
    'format' = 'json'
);
CREATE TABLE users (
    user_id BIGINT,
    full_name STRING,
    country STRING,
    is_active BOOLEAN,
    PRIMARY KEY (user_id) NOT ENFORCED
) WITH (
    'connector' = 'mysql-cdc', 'hostname' = 'db', 'port' = '3306',
    'username' = 'cdc', 'password' = '${secret:db}',
    'database-name' = 'shop', 'table-name' = 'users'
);
CREATE TABLE enriched (
    id BIGINT, full_name STRING
) WITH ('connector' = 'delta', 'path' = 'enriched');
INSERT INTO enriched
SELECT B.id, S.full_name
FROM (SELECT *, PROCTIME() AS p_time FROM bare) B
JOIN users FOR SYSTEM_TIME AS OF B.p_time AS S
ON MOD(B.user_id, 10000) = S.user_id;
