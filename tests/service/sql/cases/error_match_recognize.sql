-- error: MATCH_RECOGNIZE is not supported: it keeps state over many records
-- fixed: SELECT * FROM orders MATCH_RECOGNIZE (PARTITION BY id ORDER BY ts MEASURES A.ts AS t PATTERN (A B) DEFINE B AS B.price > 3) => SELECT ts, ts, currency, id FROM orders WHERE price > 3
-- with: orders out_windows
INSERT INTO o SELECT * FROM orders MATCH_RECOGNIZE (PARTITION BY id ORDER BY ts MEASURES A.ts AS t PATTERN (A B) DEFINE B AS B.price > 3);
