-- error: expected OPTIONS, found "BROADCAST"
-- fixed: /*+ BROADCAST(orders) */ => /*+ OPTIONS('scan.startup.mode' = 'latest-offset') */
-- with: orders out_id_name
INSERT INTO o SELECT id, currency FROM orders /*+ BROADCAST(orders) */;
