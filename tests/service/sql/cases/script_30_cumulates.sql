-- plan: WINDOW CUMULATE of page_views.viewed_at, size 600000 ms, step 120000 ms | GROUP BY window_start, window_end
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
SELECT window_start, window_end, COUNT(*) FROM TABLE(CUMULATE(TABLE page_views, DESCRIPTOR(viewed_at), INTERVAL '2' MINUTES, INTERVAL '10' MINUTES)) GROUP BY window_start, window_end;
