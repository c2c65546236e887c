-- plan: WATERMARK page_views.viewed_at AS (page_views.viewed_at - INTERVAL '10' SECOND) | WINDOW TUMBLE of page_views.viewed_at, size 60000 ms | GROUP BY window_start, window_end, page_views.device.os AS k0 | AGGREGATE COUNT(*):BIGINT AS a0 | EMIT windows when the watermark has reached their end | LATE records INTO the job's own table | SELECT window_time AS window_time, k0 AS os, a0 AS n | INTO preview print(, 100 rows)
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
SELECT TUMBLE_ROWTIME(viewed_at, INTERVAL '1' MINUTE) AS window_time, device.os AS os, COUNT(*) AS n FROM page_views GROUP BY TUMBLE(viewed_at, INTERVAL '1' MINUTE), device.os ORDER BY window_time, os;
