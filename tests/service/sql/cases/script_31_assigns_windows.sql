-- plan: SELECT page_views.view_id AS view_id, page_views.user_id AS user_id, page_views.url AS url, page_views.referrer AS referrer, page_views.device AS device, page_views.viewed_at AS viewed_at, page_views.proc AS proc, WINDOW_START(page_views.viewed_at, 600000:BIGINT, 0:BIGINT) AS window_start, (WINDOW_START(page_views.viewed_at, 600000:BIGINT, 0:BIGINT) + INTERVAL '600' SECOND) AS window_end, ((WINDOW_START(page_views.viewed_at, 600000:BIGINT, 0:BIGINT) + INTERVAL '600' SECOND) - INTERVAL '0.001' SECOND) AS window_time | INTO preview print(, 100 rows)
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
SELECT * FROM TABLE(TUMBLE(TABLE page_views, DESCRIPTOR(viewed_at), INTERVAL '10' MINUTES));
