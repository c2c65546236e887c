-- plan: LEFT JOIN users AS users mysql-cdc(shop.users @ db:3306) [user_id BIGINT NOT NULL, full_name STRING, country STRING, is_active BOOLEAN; key user_id] ON v.user_id = users.user_id AND (users.is_active = true) | SELECT v.view_id AS view_id, CASE WHEN (users.user_id IS NOT NULL) THEN CONCAT(users.full_name, ' (', users.country, ')') END AS n | INTO enriched delta(enriched)
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
    view_id BIGINT, n STRING
) WITH ('connector' = 'delta', 'path' = 'enriched');
CREATE VIEW active_users AS SELECT user_id, CONCAT(full_name, ' (', country, ')') AS n FROM users WHERE is_active = TRUE;
INSERT INTO enriched SELECT v.view_id, a.n FROM page_views v LEFT JOIN active_users FOR SYSTEM_TIME AS OF v.proc AS a ON v.user_id = a.user_id;
