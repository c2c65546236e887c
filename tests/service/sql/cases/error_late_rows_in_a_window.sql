-- error: table "d" has 'join.late-rows.wait', but the query has a window, which may fire before the record is joined
-- fixed: /*+ OPTIONS('join.late-rows.wait' = '5 min') */ =>
-- with: s_plain d_small
CREATE TABLE o (name STRING, n BIGINT) WITH ('connector' = 'blackhole');
INSERT INTO o SELECT name, COUNT(*) FROM TABLE(TUMBLE((SELECT d.name, s.p FROM s JOIN d /*+ OPTIONS('join.late-rows.wait' = '5 min') */ FOR SYSTEM_TIME AS OF s.p ON s.k = d.id), DESCRIPTOR(p), INTERVAL '1' MINUTE)) GROUP BY window_start, window_end, name;
