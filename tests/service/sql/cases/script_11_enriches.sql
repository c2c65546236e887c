-- plan: LEFT JOIN users AS u mysql-cdc(shop.users @ db:3306) [user_id BIGINT NOT NULL, full_name STRING, country STRING, is_active BOOLEAN; key user_id] ON v.user_id = u.user_id | SELECT v.view_id AS view_id, v.url AS url, u.full_name AS full_name, u.country AS country | INTO enriched delta(enriched)
-- with: page_views users_of_shop
CREATE TABLE enriched (
    view_id BIGINT, url STRING, full_name STRING, country STRING
) WITH ('connector' = 'delta', 'path' = 'enriched');
INSERT INTO enriched
SELECT v.view_id, v.url, u.full_name, u.country
FROM page_views AS v
LEFT JOIN users FOR SYSTEM_TIME AS OF v.proc AS u
  ON v.user_id = u.user_id;
