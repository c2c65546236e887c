-- error: expected
-- fixed: /*+ ('scan.startup.mode' = 'latest-offset') */ => /*+ OPTIONS('scan.startup.mode' = 'latest-offset') */
-- with: s_key out_bigint
INSERT INTO o SELECT k FROM s /*+ ('scan.startup.mode' = 'latest-offset') */;
