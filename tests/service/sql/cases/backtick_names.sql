-- plan: FROM s AS s kafka(s @ broker:9092, earliest-offset) [select BIGINT, a b STRING, x`y INT, p = PROCTIME()] | SELECT s.select AS a, s.a b AS b, s.x`y AS c
-- with: d_small
CREATE TABLE s (`select` BIGINT, `a b` STRING, `x``y` INT, p AS PROCTIME()) WITH (
    'connector' = 'kafka', 'topic' = 's', 'properties.bootstrap.servers' = 'broker:9092', 'format' = 'json',
    'scan.startup.mode' = 'earliest-offset'
);
CREATE TABLE o (a BIGINT, b STRING, c INT) WITH ('connector' = 'print');
INSERT INTO o SELECT `s`.`select`, s.`a b`, `x``y` FROM `s` JOIN `d` FOR SYSTEM_TIME AS OF s.p ON s.`select` = d.id;
