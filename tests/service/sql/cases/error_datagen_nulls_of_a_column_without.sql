-- error: is NOT NULL
-- fixed:  NOT NULL => 
-- with: d_small
CREATE TABLE s (k BIGINT NOT NULL, p AS PROCTIME()) WITH (
    'connector' = 'datagen',
    'fields.k.null-rate' = '0.1'
);
CREATE TABLE o (x BIGINT) WITH ('connector' = 'blackhole');
INSERT INTO o SELECT s.k
FROM s JOIN d FOR SYSTEM_TIME AS OF s.p ON s.k = d.id;
