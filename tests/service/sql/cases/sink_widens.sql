-- plan: SELECT CAST(s.n AS BIGINT) AS a, CAST(s.f AS DOUBLE) AS b, CAST(s.amount AS DECIMAL(12, 4)) AS c, CAST(s.amount AS DOUBLE) AS d, CAST(s.ts AS DATE) AS e, CAST(s.ts AS TIMESTAMP(6)) AS g, CAST(s.inst AS TIMESTAMP(3)) AS h, CAST(s.tiny AS SMALLINT) AS i
CREATE TABLE d (
    id BIGINT, name STRING, price DECIMAL(10, 2), level INT, since TIMESTAMP(3),
    PRIMARY KEY (id) NOT ENFORCED
) WITH (
    'connector' = 'mysql-cdc', 'hostname' = 'db', 'username' = 'cdc', 'password' = '${secret:shop}',
    'database-name' = 'shop', 'table-name' = 'd'
);
CREATE TABLE s (
    k BIGINT, n INT, tiny TINYINT, t STRING, amount DECIMAL(8, 3), r DOUBLE, f FLOAT, ok BOOLEAN,
    b BYTES, dt DATE, tm TIME, ts TIMESTAMP(3), inst TIMESTAMP_LTZ(3), p AS PROCTIME()
) WITH (
    'connector' = 'kafka', 'topic' = 's', 'properties.bootstrap.servers' = 'broker:9092',
    'format' = 'json', 'scan.startup.mode' = 'earliest-offset'
);
CREATE TABLE o (a BIGINT, b DOUBLE, c DECIMAL(12, 4), d DOUBLE, e DATE, g TIMESTAMP(6), h TIMESTAMP(3), i SMALLINT) WITH ('connector' = 'print');
INSERT INTO o SELECT n, f, amount, amount, ts, ts, inst, tiny FROM s JOIN d FOR SYSTEM_TIME AS OF s.p ON s.k = d.id;
