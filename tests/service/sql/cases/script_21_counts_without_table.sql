-- plan: WATERMARK page_views.viewed_at AS (page_views.viewed_at - INTERVAL '10' SECOND) | WINDOW HOP of page_views.viewed_at, size 300000 ms, slide 30000 ms | GROUP BY window_start, window_end, page_views.url AS k0 | AGGREGATE COUNT(*):BIGINT AS a0 | EMIT windows when the watermark has reached their end | LATE records INTO the job's own table | SELECT window_start AS window_start, k0 AS url, a0 AS EXPR$2 | INTO preview print(, 100 rows)
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
SELECT window_start, url, COUNT(*) FROM HOP(TABLE page_views, DESCRIPTOR(viewed_at), INTERVAL '30' SECONDS, INTERVAL '5' MINUTES) GROUP BY window_start, window_end, url;
