-- plan: FROM s AS s kafka(s @ b:1, latest-offset) [k BIGINT, n INT, t STRING, p = PROCTIME()]
-- with: d_price out_bigint_string base … join_name
CREATE TABLE s (p AS PROCTIME()) WITH ('connector' = 'kafka', 'topic' = 's', 'properties.bootstrap.servers' = 'b:1', 'format' = 'json') LIKE base (EXCLUDING ALL);
