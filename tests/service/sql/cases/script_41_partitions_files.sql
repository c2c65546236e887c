-- plan: SELECT page_views.view_id AS view_id, DATE_FORMAT(page_views.viewed_at, 'yyyy-MM-dd') AS dt | INTO lake delta(lake, partitioned by dt)
-- with: page_views
CREATE TABLE lake (view_id BIGINT, dt STRING) PARTITIONED BY (dt) WITH ('connector' = 'delta', 'path' = 'lake');
INSERT INTO lake SELECT view_id, DATE_FORMAT(viewed_at, 'yyyy-MM-dd') FROM page_views;
