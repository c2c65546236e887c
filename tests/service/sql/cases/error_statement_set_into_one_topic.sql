-- error: INSERT INTO "p" writes to topic "out", as INSERT INTO "o" does
-- fixed: 'topic' = 'out' => 'topic' = 'other'
-- with: d_price s_plain
CREATE TABLE o (x BIGINT, y STRING) WITH (
    'connector' = 'kafka', 'topic' = 'out', 'properties.bootstrap.servers' = 'broker:9092',
    'format' = 'json'
);
CREATE TABLE p (x BIGINT, y STRING) WITH (
    'connector' = 'kafka', 'topic' = 'out', 'properties.bootstrap.servers' = 'broker:9092',
    'format' = 'json'
);
EXECUTE STATEMENT SET BEGIN
INSERT INTO o SELECT s.k, d.name FROM s JOIN d FOR SYSTEM_TIME AS OF s.p ON s.k = d.id;
INSERT INTO p SELECT s.k, d.name FROM s JOIN d FOR SYSTEM_TIME AS OF s.p ON s.k = d.id;
END;
