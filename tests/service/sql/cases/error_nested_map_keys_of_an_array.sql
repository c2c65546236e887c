-- error: MAP_KEYS takes a MAP, not ARRAY<
-- fixed: MAP_KEYS(items) => MAP_KEYS(labels)
-- with: d_named s_nested
CREATE TABLE o (a ARRAY<STRING>) WITH ('connector' = 'blackhole');
INSERT INTO o SELECT MAP_KEYS(items) FROM s JOIN d FOR SYSTEM_TIME AS OF s.p ON s.k = d.id;
