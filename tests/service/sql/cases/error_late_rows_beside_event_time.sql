-- error: table "d" has 'join.late-rows.wait', but the query joins by event time, where records wait for the watermark
-- fixed: OF s.ts => OF s.p
-- with: s_event_time d_small
CREATE TABLE o (k BIGINT, name STRING) WITH ('connector' = 'blackhole');
INSERT INTO o SELECT s.k, d.name FROM s LEFT JOIN d /*+ OPTIONS('join.late-rows.wait' = '5 min') */ FOR SYSTEM_TIME AS OF s.ts ON s.k = d.id;
