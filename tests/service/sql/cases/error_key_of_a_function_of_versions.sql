-- error: needs column "id" of the primary key
-- fixed: ON LOWER(d.name) = s.t => ON d.id = s.k AND LOWER(d.name) = s.t
-- with: d_versions s_event_time
CREATE TABLE o (x BIGINT) WITH ('connector' = 'blackhole');
INSERT INTO o SELECT s.k FROM s JOIN d FOR SYSTEM_TIME AS OF s.ts ON LOWER(d.name) = s.t;
