-- warning: Setting "sql-client.execution.result-mode" has no effect: it is of Flink's client, which shows results in its own way.
-- with: orders out_id_name
INSERT INTO o SELECT id, currency FROM orders;
SET 'sql-client.execution.result-mode' = 'tableau';
