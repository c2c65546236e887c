-- plan: WATERMARK page_views.viewed_at AS (page_views.viewed_at - INTERVAL '10' SECOND) | WINDOW TUMBLE of page_views.viewed_at, size 3600000 ms | GROUP BY window_start, window_end, page_views.url AS k0 | AGGREGATE COUNT(*):BIGINT AS a0 | EMIT windows when the watermark has reached their end | LATE records INTO the job's own table | SELECT k0 AS url, window_start AS wstart, a0 AS n | INTO per_hour kafka(per_hour @ broker:9092)
-- with: page_views
CREATE TABLE per_hour (
    url STRING,
    wstart TIMESTAMP(3),
    n BIGINT
) WITH (
    'connector' = 'kafka',
    'topic' = 'per_hour',
    'properties.bootstrap.servers' = 'broker:9092',
    'scan.startup.mode' = 'earliest-offset',
    'format' = 'json'
);
INSERT INTO per_hour
SELECT url, TUMBLE_START(viewed_at, INTERVAL '1' HOUR) AS wstart, COUNT(*) AS n
FROM page_views
GROUP BY TUMBLE(viewed_at, INTERVAL '1' HOUR), url;
