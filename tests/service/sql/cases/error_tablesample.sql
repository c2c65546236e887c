-- error: TABLESAMPLE is not supported
-- fixed:  TABLESAMPLE BERNOULLI (10) =>  WHERE MOD(id, 10) = 0
-- with: orders out_windows
INSERT INTO o SELECT ts, ts, currency, id FROM orders TABLESAMPLE BERNOULLI (10);
