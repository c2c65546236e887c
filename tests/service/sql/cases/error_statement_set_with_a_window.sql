-- error: INSERT INTO "counts" joins by event time, has a window or waits for late rows, which a statement set of several INSERTs cannot
-- fixed: EXECUTE STATEMENT SET BEGIN =>
-- fixed: INSERT INTO o SELECT s.k, d.name FROM s JOIN d FOR SYSTEM_TIME AS OF s.p ON s.k = d.id; =>
-- with: s_plain out_bigint_string
-- fixed: END; =>
CREATE TABLE d (id BIGINT PRIMARY KEY NOT ENFORCED, name STRING, price DECIMAL(10, 2)) WITH (
    'connector' = 'mysql-cdc', 'hostname' = 'db', 'username' = 'cdc', 'password' = '${secret:shop}',
    'database-name' = 'shop', 'table-name' = 'd'
);
CREATE TABLE counts (x BIGINT, n BIGINT) WITH ('connector' = 'blackhole');
EXECUTE STATEMENT SET BEGIN
INSERT INTO o SELECT s.k, d.name FROM s JOIN d FOR SYSTEM_TIME AS OF s.p ON s.k = d.id;
INSERT INTO counts SELECT k, COUNT(*)
    FROM TABLE(TUMBLE(TABLE s, DESCRIPTOR(p), INTERVAL '1' MINUTE))
    GROUP BY window_start, window_end, k;
END;
