-- error: lookup.strategy shuffle, which jobs with windows or event time do not have
-- fixed: 'lookup.strategy' = 'shuffle' => 'lookup.strategy' = 'index'
-- with: s_event_time out_at_bigint
CREATE TABLE d (id BIGINT, name STRING, price DECIMAL(10, 2), since TIMESTAMP(3), PRIMARY KEY (id) NOT ENFORCED) WITH (
    'connector' = 'mysql-cdc', 'hostname' = 'db', 'username' = 'cdc', 'password' = '${secret:shop}',
    'database-name' = 'shop', 'table-name' = 'd', 'lookup.strategy' = 'shuffle'
);
CREATE VIEW j AS SELECT s.* FROM s JOIN d FOR SYSTEM_TIME AS OF s.p ON s.k = d.id;
INSERT INTO o SELECT window_start, COUNT(*)
FROM TABLE(TUMBLE(TABLE j, DESCRIPTOR(ts), INTERVAL '1' MINUTE))
GROUP BY window_start, window_end;
