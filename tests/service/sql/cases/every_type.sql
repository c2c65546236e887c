-- plan: FROM s AS s kafka(s @ broker:9092, earliest-offset) [a BOOLEAN, b TINYINT, c SMALLINT, d INT, e INT, f BIGINT, g FLOAT, h DOUBLE, i DOUBLE, j DECIMAL(10, 0), k BIGINT, l DECIMAL(5, 0), m DECIMAL(38, 10), n DECIMAL(4, 4), o STRING, q STRING, r STRING, t STRING, u BYTES, v BYTES, w BYTES, x DATE, y TIME(0), z TIME(3), aa TIMESTAMP(6), ab TIMESTAMP(0), ac TIMESTAMP(3), ad TIMESTAMP_LTZ(6), ae TIMESTAMP_LTZ(6), af TIMESTAMP_LTZ(3), p = PROCTIME()]
-- with: d_small … out_bigint join_k
CREATE TABLE s (a BOOLEAN, b TINYINT, c SMALLINT, d INT, e INTEGER, f BIGINT, g FLOAT, h DOUBLE, i DOUBLE PRECISION,
    j DECIMAL, k BIGINT, l DECIMAL(5), m NUMERIC(38, 10), n DEC(4, 4), o CHAR(3), q CHAR, r VARCHAR(10), t STRING,
    u BINARY(2), v VARBINARY(8), w BYTES, x DATE, y TIME, z TIME(3), aa TIMESTAMP, ab TIMESTAMP(0),
    ac TIMESTAMP(3) WITHOUT TIME ZONE, ad TIMESTAMP_LTZ, ae TIMESTAMP_LTZ(6), af TIMESTAMP(3) WITH LOCAL TIME ZONE,
    p AS PROCTIME()) WITH (
    'connector' = 'kafka', 'topic' = 's', 'properties.bootstrap.servers' = 'broker:9092', 'format' = 'json',
    'scan.startup.mode' = 'earliest-offset'
);
