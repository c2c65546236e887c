-- plan: INNER JOIN users AS u mysql-cdc(shop.users @ db:3306) [user_id BIGINT NOT NULL, full_name STRING, country STRING, is_active BOOLEAN; key user_id] ON v.user_id = u.user_id AND u.is_active | SELECT v.view_id AS view_id, u.country AS country | INTO enriched delta(enriched)
-- with: page_views users_of_shop
CREATE TABLE enriched (
    view_id BIGINT, country STRING
) WITH ('connector' = 'delta', 'path' = 'enriched');
INSERT INTO enriched
SELECT /*+ LOOKUP('table'='u', 'async'='true', 'output-mode'='allow_unordered') */ v.view_id, u.country
FROM page_views v
JOIN users FOR SYSTEM_TIME AS OF v.proc u ON v.user_id = u.user_id AND u.is_active;
