-- plan: FROM s AS s datagen(10/s, r.id sequence start 1 end 9, r.tags random length 2, r.tags.element random length 4, m random length 1, m.key random length 8, m.value.n random min 1 max 5) [k BIGINT, r ROW<`id` BIGINT, `tags` ARRAY<STRING>>, m MAP<STRING, ROW<`n` INT>>, p = PROCTIME()]
-- with: d_by_shop
CREATE TABLE s (k BIGINT, r ROW<id BIGINT, tags ARRAY<STRING>>, m MAP<STRING, ROW<n INT>>, p AS PROCTIME()) WITH (
    'connector' = 'datagen', 'rows-per-second' = '10', 'fields.r.id.start' = '1', 'fields.r.id.end' = '9',
    'fields.r.tags.length' = '2', 'fields.r.tags.element.length' = '4', 'fields.m.length' = '1',
    'fields.m.key.length' = '8', 'fields.m.value.n.min' = '1', 'fields.m.value.n.max' = '5'
);
CREATE TABLE o (x STRING) WITH ('connector' = 'blackhole');
INSERT INTO o SELECT d.name FROM s JOIN d FOR SYSTEM_TIME AS OF s.p ON s.k = d.id;
