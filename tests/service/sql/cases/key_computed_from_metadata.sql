-- plan: INNER JOIN d AS d mysql-cdc(shop.d @ db:3306) [id BIGINT NOT NULL, name STRING; key id] ON CAST(CAST((s.off % 10:BIGINT) AS INT) AS BIGINT) = d.id
-- with: d_small
CREATE TABLE s (off BIGINT METADATA FROM 'offset', v INT, p AS PROCTIME()) WITH (
    'connector' = 'kafka', 'topic' = 's', 'properties.bootstrap.servers' = 'broker:9092', 'format' = 'json',
    'scan.startup.mode' = 'earliest-offset'
);
CREATE TABLE o (x BIGINT) WITH ('connector' = 'blackhole');
INSERT INTO o SELECT off FROM s JOIN d FOR SYSTEM_TIME AS OF s.p ON d.id = MOD(off, 10);
