-- error: is no text with
-- fixed: #{Name.fullName => #{Name.fullName}
-- with: d_small
CREATE TABLE s (k BIGINT, name STRING, p AS PROCTIME()) WITH (
    'connector' = 'datagen',
    'fields.name.expression' = '#{Name.fullName'
);
CREATE TABLE o (x BIGINT) WITH ('connector' = 'blackhole');
INSERT INTO o SELECT s.k
FROM s JOIN d FOR SYSTEM_TIME AS OF s.p ON s.k = d.id;
