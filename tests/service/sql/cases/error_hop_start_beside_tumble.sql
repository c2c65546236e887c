-- error: function HOP_START is not supported TUMBLE(ts, size) stands in GROUP BY
-- fixed: HOP_START(ts, INTERVAL '2' HOUR) => TUMBLE_START(ts, INTERVAL '1' HOUR)
-- with: orders out_windows
INSERT INTO o SELECT HOP_START(ts, INTERVAL '2' HOUR), NULL, currency, COUNT(*) FROM orders GROUP BY TUMBLE(ts, INTERVAL '1' HOUR), currency;
