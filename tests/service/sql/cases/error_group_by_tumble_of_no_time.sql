-- error: "id" is BIGINT, not the rowtime of the stream nor its PROCTIME() column
-- fixed: TUMBLE(id, => TUMBLE(ts,
-- with: orders out_windows
INSERT INTO o SELECT NULL, NULL, currency, COUNT(*) FROM orders GROUP BY TUMBLE(id, INTERVAL '1' HOUR), currency;
