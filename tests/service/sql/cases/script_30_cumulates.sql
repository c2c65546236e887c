-- plan: WINDOW CUMULATE of page_views.viewed_at, size 600000 ms, step 120000 ms | GROUP BY window_start, window_end
-- with: page_views
SELECT window_start, window_end, COUNT(*) FROM TABLE(CUMULATE(TABLE page_views, DESCRIPTOR(viewed_at), INTERVAL '2' MINUTES, INTERVAL '10' MINUTES)) GROUP BY window_start, window_end;
