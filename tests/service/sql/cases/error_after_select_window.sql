-- error: WINDOW is not supported
-- fixed: FROM s JOIN d FOR SYSTEM_TIME AS OF s.p ON s.k = d.id WINDOW w AS (ORDER BY k) => FROM TABLE(TUMBLE(TABLE s, DESCRIPTOR(p), INTERVAL '1' MINUTE)) GROUP BY window_start, window_end, k
-- with: d_priced s_all_types out_bigint
INSERT INTO o SELECT k FROM s JOIN d FOR SYSTEM_TIME AS OF s.p ON s.k = d.id WINDOW w AS (ORDER BY k);
