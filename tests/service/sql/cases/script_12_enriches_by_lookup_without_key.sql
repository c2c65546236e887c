-- plan: INNER JOIN customers AS c mysql-cdc(shop.customers @ db:3306) [id BIGINT NOT NULL, name STRING, country STRING, zip STRING; key id] ON v.user_id = c.id | SELECT v.view_id AS view_id, c.country AS country, c.zip AS zip | INTO enriched delta(enriched)
-- with: page_views
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
