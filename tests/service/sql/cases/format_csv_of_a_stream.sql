-- plan: FROM s AS s kafka(s @ broker:9092, earliest-offset, key id of csv(null-literal ) and not in the value, csv(allow-comments true, array-element-delimiter |, escape-character \, field-delimiter ;, ignore-parse-errors true, null-literal NULL, quote-character ')) [k BIGINT, id STRING, l ARRAY<INT>, r ROW<`a` INT, `b` STRING>, p = PROCTIME()]
-- with: d_small
CREATE TABLE s (k BIGINT, id STRING, l ARRAY<INT>, r ROW<a INT, b STRING>, p AS PROCTIME()) WITH (
    'connector' = 'kafka', 'topic' = 's', 'properties.bootstrap.servers' = 'broker:9092',
    'scan.startup.mode' = 'earliest-offset', 'value.format' = 'csv', 'value.csv.field-delimiter' = ';', 'value.csv.quote-character' = '''',
    'value.csv.allow-comments' = 'true', 'value.csv.ignore-parse-errors' = 'true', 'value.csv.array-element-delimiter' = '|',
    'value.csv.escape-character' = '\', 'value.csv.null-literal' = 'NULL', 'key.format' = 'csv', 'key.fields' = 'id',
    'key.csv.null-literal' = '', 'value.fields-include' = 'EXCEPT_KEY'
);
CREATE TABLE o (x BIGINT) WITH ('connector' = 'blackhole');
INSERT INTO o SELECT s.k FROM s JOIN d FOR SYSTEM_TIME AS OF s.p ON s.k = d.id;
