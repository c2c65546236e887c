-- error: OPTIONS is given twice
-- fixed: INCLUDING OPTIONS EXCLUDING OPTIONS => INCLUDING OPTIONS
CREATE TABLE base (k BIGINT, n INT, t STRING, p AS PROCTIME()) WITH (
    'connector' = 'kafka', 'topic' = 'base', 'properties.bootstrap.servers' = 'broker:9092',
    'format' = 'json', 'scan.startup.mode' = 'earliest-offset'
);
CREATE TABLE s LIKE base (INCLUDING OPTIONS EXCLUDING OPTIONS);
