-- error: expected a statement, found the prompt "Flink SQL>"
-- fixed: Flink SQL> =>
-- with: orders out_id_name
Flink SQL> INSERT INTO o SELECT id, currency FROM orders;
