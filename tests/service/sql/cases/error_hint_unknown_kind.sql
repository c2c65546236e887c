-- error: expected a hint, found "WHATEVER_ELSE"
-- fixed: WHATEVER_ELSE => LOOKUP
-- with: orders out_id_name
INSERT INTO o SELECT /*+ WHATEVER_ELSE(orders) */ id, currency FROM orders;
