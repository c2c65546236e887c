-- plan: WATERMARK page_views.viewed_at AS (page_views.viewed_at - INTERVAL '10' SECOND) | WINDOW TUMBLE of page_views.viewed_at, size 60000 ms | GROUP BY window_start, window_end, page_views.url AS k0 | AGGREGATE COUNT(*):BIGINT AS a0, COUNT(DISTINCT page_views.user_id):BIGINT AS a1 | EMIT windows when the watermark has reached their end | LATE records INTO the job's own table | SELECT window_start AS window_start, window_end AS window_end, k0 AS url, a0 AS views, a1 AS visitors | INTO counts delta(counts)
-- with: page_views
CREATE TABLE counts (
    window_start TIMESTAMP(3), window_end TIMESTAMP(3), url STRING, views BIGINT, visitors BIGINT
) WITH ('connector' = 'delta', 'path' = 'counts');
INSERT INTO counts
SELECT window_start, window_end, url, COUNT(*) AS views, COUNT(DISTINCT user_id)
FROM TABLE(
  TUMBLE(TABLE page_views, DESCRIPTOR(viewed_at), INTERVAL '1' MINUTE))
GROUP BY window_start, window_end, url;
