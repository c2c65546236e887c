-- plan: WHERE (NOT((page_views.url LIKE '%bot%')) AND (page_views.device.languages[1] = 'de')) | SELECT page_views.view_id AS view_id, page_views.user_id AS user_id, UPPER(page_views.url) AS url | INTO kept delta(human)
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
CREATE TEMPORARY VIEW human AS
SELECT * FROM page_views WHERE url NOT LIKE '%bot%';
CREATE TEMPORARY VIEW human_de AS SELECT view_id, user_id, UPPER(url) AS url FROM human WHERE device.languages[1] = 'de';
CREATE TABLE kept WITH ('connector' = 'delta', 'path' = 'human') AS SELECT * FROM human_de;
