-- plan: INNER JOIN customers AS c mysql-cdc(shop.customers @ db:3306) [id BIGINT NOT NULL, name STRING, country STRING, zip STRING; key id] ON v.user_id = c.id | SELECT v.view_id AS view_id, c.country AS country, c.zip AS zip | INTO enriched delta(enriched)
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
CREATE TABLE customers (
    id BIGINT,
    name STRING,
    country STRING,
    zip STRING
) WITH (
    'connector' = 'mysql-cdc', 'hostname' = 'db', 'port' = '3306',
    'username' = 'cdc', 'password' = '${secret:db}',
    'database-name' = 'shop', 'table-name' = 'customers'
);
CREATE TABLE enriched (
    view_id BIGINT, country STRING, zip STRING
) WITH ('connector' = 'delta', 'path' = 'enriched');
-- enrich each view with customer information
INSERT INTO enriched
SELECT v.view_id, c.country, c.zip
FROM page_views AS v
  JOIN customers FOR SYSTEM_TIME AS OF v.proc AS c
    ON v.user_id = c.id;
