-- error: a join behind SESSION
-- fixed: INSERT INTO o => CREATE VIEW joined AS SELECT s.* FROM s JOIN d FOR SYSTEM_TIME AS OF s.p ON s.k = d.id; INSERT INTO o
-- fixed: TABLE s, DESCRIPTOR => TABLE joined, DESCRIPTOR
-- with: s_event_time out_at_bigint
-- fixed: JOIN d FOR SYSTEM_TIME AS OF s.p ON s.k = d.id GROUP => GROUP
CREATE TABLE d (id BIGINT, name STRING, price DECIMAL(10, 2), since TIMESTAMP(3), PRIMARY KEY (id) NOT ENFORCED) WITH (
    'connector' = 'mysql-cdc', 'hostname' = 'db', 'username' = 'cdc', 'password' = '${secret:shop}',
    'database-name' = 'shop', 'table-name' = 'd'
);
INSERT INTO o SELECT window_start, COUNT(*)
FROM TABLE(SESSION(TABLE s, DESCRIPTOR(ts), INTERVAL '1' MINUTE))
JOIN d FOR SYSTEM_TIME AS OF s.p ON s.k = d.id GROUP BY window_start, window_end;
