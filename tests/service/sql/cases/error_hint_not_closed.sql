-- error: expected ")", found "*/"
-- fixed: LOOKUP( => LOOKUP()
-- with: orders out_id_name
INSERT INTO o SELECT /*+ LOOKUP( */ id, currency FROM orders;
