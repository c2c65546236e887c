-- plan: WATERMARK page_views.viewed_at AS (page_views.viewed_at - INTERVAL '10' SECOND) | WINDOW SESSION of page_views.viewed_at, gap 900000 ms | GROUP BY window_start, window_end, page_views.user_id AS k0 | AGGREGATE COUNT(*):BIGINT AS a0 | EMIT windows when the watermark has reached their end | LATE records INTO the job's own table | SELECT window_start AS window_start, window_end AS window_end, k0 AS user_id, a0 AS EXPR$3 | INTO preview print(, 100 rows)
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
SELECT window_start, window_end, user_id, COUNT(*) FROM TABLE(SESSION(TABLE page_views PARTITION BY user_id, DESCRIPTOR(viewed_at), INTERVAL '15' MINUTES)) GROUP BY window_start, window_end, user_id;
