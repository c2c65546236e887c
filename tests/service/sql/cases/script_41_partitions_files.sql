-- plan: SELECT page_views.view_id AS view_id, DATE_FORMAT(page_views.viewed_at, 'yyyy-MM-dd') AS dt | INTO lake delta(lake, partitioned by dt)
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
CREATE TABLE lake (view_id BIGINT, dt STRING) PARTITIONED BY (dt) WITH ('connector' = 'delta', 'path' = 'lake');
INSERT INTO lake SELECT view_id, DATE_FORMAT(viewed_at, 'yyyy-MM-dd') FROM page_views;
