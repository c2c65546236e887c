-- plan: WHERE (NOT((page_views.url LIKE '%bot%')) AND (page_views.device.languages[1] = 'de')) | SELECT page_views.view_id AS view_id, page_views.user_id AS user_id, UPPER(page_views.url) AS url | INTO kept delta(human)
-- with: page_views
CREATE TEMPORARY VIEW human AS
SELECT * FROM page_views WHERE url NOT LIKE '%bot%';
CREATE TEMPORARY VIEW human_de AS SELECT view_id, user_id, UPPER(url) AS url FROM human WHERE device.languages[1] = 'de';
CREATE TABLE kept WITH ('connector' = 'delta', 'path' = 'human') AS SELECT * FROM human_de;
