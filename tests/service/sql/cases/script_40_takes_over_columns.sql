-- plan: SELECT page_views.view_id AS view_id, page_views.user_id AS user_id, page_views.url AS url, page_views.referrer AS referrer, page_views.device AS device, page_views.viewed_at AS viewed_at | INTO copy_of_views print()
-- with: page_views
CREATE TABLE copy_of_views WITH ('connector' = 'print') LIKE page_views (EXCLUDING ALL);
INSERT INTO copy_of_views SELECT view_id, user_id, url, referrer, device, viewed_at FROM page_views /*+ OPTIONS('scan.startup.mode'='latest-offset') */;
