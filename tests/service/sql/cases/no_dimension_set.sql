-- plan: INSERT 1 | INSERT 2 | WHERE (s.n > 3) | INTO big blackhole() | WHERE NOT((s.n > 3)) | INTO small blackhole()
CREATE TABLE s (k BIGINT, n INT) WITH (
    'connector' = 'kafka', 'topic' = 's', 'properties.bootstrap.servers' = 'broker:9092',
    'format' = 'json', 'scan.startup.mode' = 'earliest-offset'
);
CREATE TABLE big (x BIGINT) WITH ('connector' = 'blackhole');
CREATE TABLE small (x BIGINT) WITH ('connector' = 'blackhole');
EXECUTE STATEMENT SET BEGIN
INSERT INTO big SELECT k FROM s WHERE n > 3;
INSERT INTO small SELECT k FROM s WHERE NOT n > 3;
END;
