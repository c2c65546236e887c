-- plan: LEFT JOIN users AS users mysql-cdc(shop.users @ db:3306) [user_id BIGINT NOT NULL, full_name STRING, country STRING, is_active BOOLEAN; key user_id] ON v.user_id = users.user_id AND (users.is_active = true) | SELECT v.view_id AS view_id, CASE WHEN (users.user_id IS NOT NULL) THEN CONCAT(users.full_name, ' (', users.country, ')') END AS n | INTO enriched delta(enriched)
-- with: page_views users_of_shop
CREATE TABLE enriched (
    view_id BIGINT, n STRING
) WITH ('connector' = 'delta', 'path' = 'enriched');
CREATE VIEW active_users AS SELECT user_id, CONCAT(full_name, ' (', country, ')') AS n FROM users WHERE is_active = TRUE;
INSERT INTO enriched SELECT v.view_id, a.n FROM page_views v LEFT JOIN active_users FOR SYSTEM_TIME AS OF v.proc AS a ON v.user_id = a.user_id;
