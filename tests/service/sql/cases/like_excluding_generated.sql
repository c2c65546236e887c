-- plan: FROM s AS s kafka(s @ b:1, latest-offset) [k BIGINT, n INT, t STRING, p = PROCTIME()]
-- with: d_price out_bigint_string base
CREATE TABLE s (p AS PROCTIME()) WITH ('connector' = 'kafka', 'topic' = 's', 'properties.bootstrap.servers' = 'b:1', 'format' = 'json') LIKE base (EXCLUDING ALL);
INSERT INTO o SELECT s.k, d.name FROM s JOIN d FOR SYSTEM_TIME AS OF s.p ON s.k = d.id;
