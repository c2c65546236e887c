-- plan: SELECT page_views.view_id AS view_id, page_views.user_id AS user_id, page_views.url AS url, page_views.viewed_at AS viewed_at | INTO kept delta(kept)
-- mirror a topic into a table
-- with: page_views
CREATE TABLE kept (
    view_id BIGINT, user_id BIGINT, url STRING, viewed_at TIMESTAMP(3)
) WITH ('connector' = 'delta', 'path' = 'kept');
INSERT INTO kept
SELECT view_id, user_id, url, viewed_at
FROM page_views;
