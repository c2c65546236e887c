-- plan: WATERMARK o.ts AS (o.ts - INTERVAL '5' SECOND) | INNER JOIN users AS u mysql-cdc(shop.users @ db:3306) [id BIGINT NOT NULL, name STRING, level INT; key id] ON o.user_id = u.id | WINDOW TUMBLE of o.ts, size 3600000 ms | GROUP BY window_start, window_end, u.name AS k0 | AGGREGATE COUNT(*):BIGINT AS a0 | EMIT windows when the watermark has reached their end | LATE records INTO the job's own table | SELECT window_start AS at, window_end AS until, k0 AS c, a0 AS n | INTO o blackhole()
CREATE TABLE orders (
    id BIGINT, user_id BIGINT, currency STRING, price DECIMAL(10, 2), items ARRAY<STRING>,
    ts TIMESTAMP(3), proc_time AS PROCTIME(), WATERMARK FOR ts AS ts - INTERVAL '5' SECOND
) WITH (
    'connector' = 'kafka', 'topic' = 'orders', 'properties.bootstrap.servers' = 'broker:9092',
    'format' = 'json', 'scan.startup.mode' = 'earliest-offset'
);
CREATE TABLE users (id BIGINT, name STRING, level INT, PRIMARY KEY (id) NOT ENFORCED) WITH (
    'connector' = 'mysql-cdc', 'hostname' = 'db', 'username' = 'cdc', 'password' = '${secret:shop}',
    'database-name' = 'shop', 'table-name' = 'users'
);
CREATE TABLE o (at TIMESTAMP(3), until TIMESTAMP(3), c STRING, n BIGINT) WITH ('connector' = 'blackhole');
INSERT INTO o SELECT TUMBLE_START(o.ts, INTERVAL '1' HOUR), TUMBLE_END(o.ts, INTERVAL '1' HOUR), u.name, COUNT(*) FROM orders AS o JOIN users FOR SYSTEM_TIME AS OF o.proc_time AS u ON o.user_id = u.id GROUP BY u.name, TUMBLE(o.ts, INTERVAL '1' HOUR);
