-- error: function TUMBLE_START is not supported TUMBLE(ts, size) stands in GROUP BY
-- fixed: FROM orders => FROM orders GROUP BY TUMBLE(ts, INTERVAL '2' HOUR), currency, id
-- with: orders out_windows
INSERT INTO o SELECT TUMBLE_START(ts, INTERVAL '2' HOUR), NULL, currency, id FROM orders;
