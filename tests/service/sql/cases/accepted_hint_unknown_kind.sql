-- warning: Hint WHATEVER_ELSE has no effect: no hint of this name is known here.
-- with: orders out_id_name
INSERT INTO o SELECT /*+ WHATEVER_ELSE(orders) */ id, currency FROM orders;
