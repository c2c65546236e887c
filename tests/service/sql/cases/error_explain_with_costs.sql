-- error: EXPLAIN ESTIMATED_COST is not supported
-- fixed: EXPLAIN ESTIMATED_COST INSERT => EXPLAIN INSERT
-- with: d_price s_plain out_bigint_string
EXPLAIN ESTIMATED_COST INSERT INTO o SELECT s.k, d.name FROM s JOIN d FOR SYSTEM_TIME AS OF s.p ON s.k = d.id;
