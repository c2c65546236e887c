-- error: CONSTRAINTS cannot be OVERWRITING
-- fixed: OVERWRITING CONSTRAINTS => EXCLUDING CONSTRAINTS
CREATE TABLE base (k BIGINT, n INT, t STRING, p AS PROCTIME()) WITH (
    'connector' = 'kafka', 'topic' = 'base', 'properties.bootstrap.servers' = 'broker:9092',
    'format' = 'json', 'scan.startup.mode' = 'earliest-offset'
);
CREATE TABLE s LIKE base (OVERWRITING CONSTRAINTS);
