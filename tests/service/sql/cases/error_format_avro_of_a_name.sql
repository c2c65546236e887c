-- error: column "a b" has a name that Avro does not have
-- fixed: `a b` => ab
-- with: d_small
CREATE TABLE s (k BIGINT, `a b` INT, p AS PROCTIME()) WITH (
    'connector' = 'kafka', 'topic' = 's', 'properties.bootstrap.servers' = 'broker:9092',
    'scan.startup.mode' = 'earliest-offset', 'format' = 'avro'
);
CREATE TABLE o (x BIGINT) WITH ('connector' = 'blackhole');
INSERT INTO o SELECT s.k FROM s JOIN d FOR SYSTEM_TIME AS OF s.p ON s.k = d.id;
