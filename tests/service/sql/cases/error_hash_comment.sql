-- error: a comment begins with "--", not "#"
-- fixed: # orders => -- orders
-- with: orders out_id_name
# orders
INSERT INTO o SELECT id, currency FROM orders;
