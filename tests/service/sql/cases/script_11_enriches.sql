-- plan: LEFT JOIN users AS u mysql-cdc(shop.users @ db:3306) [user_id BIGINT NOT NULL, full_name STRING, country STRING, is_active BOOLEAN; key user_id] ON v.user_id = u.user_id | SELECT v.view_id AS view_id, v.url AS url, u.full_name AS full_name, u.country AS country | INTO enriched delta(enriched)
CREATE TABLE page_views (
    view_id   BIGINT,
    user_id   BIGINT,
    url       STRING,
    referrer  STRING,
    device    ROW<os STRING, width INT, languages ARRAY<STRING>>,
    viewed_at TIMESTAMP(3),
    proc      AS PROCTIME(),
    WATERMARK FOR viewed_at AS viewed_at - INTERVAL '10' SECOND
) WITH (
    'connector' = 'kafka',
    'topic' = 'page_views',
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
    view_id BIGINT, url STRING, full_name STRING, country STRING
) WITH ('connector' = 'delta', 'path' = 'enriched');
INSERT INTO enriched
SELECT v.view_id, v.url, u.full_name, u.country
FROM page_views AS v
LEFT JOIN users FOR SYSTEM_TIME AS OF v.proc AS u
  ON v.user_id = u.user_id;
