-- plan: WATERMARK page_views.viewed_at AS (page_views.viewed_at - INTERVAL '10' SECOND) | WINDOW SESSION of page_views.viewed_at, gap 900000 ms | GROUP BY window_start, window_end, page_views.user_id AS k0 | AGGREGATE COUNT(*):BIGINT AS a0 | EMIT windows when the watermark has reached their end | LATE records INTO the job's own table | SELECT k0 AS user_id, a0 AS clicks, window_start AS since, window_end AS until | INTO preview print(, 100 rows)
-- with: page_views
SELECT user_id, COUNT(*) AS clicks, SESSION_START(viewed_at, INTERVAL '15' MINUTE) AS since, SESSION_END(viewed_at, INTERVAL '15' MINUTE) AS until
FROM page_views GROUP BY user_id, SESSION(viewed_at, INTERVAL '15' MINUTE);
