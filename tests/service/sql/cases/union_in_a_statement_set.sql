-- plan: INSERT 1 | SELECT orders.id AS id, 'a' AS name | INTO o blackhole() | INSERT 2 | SELECT orders.id AS id, 'b' AS name | INTO o blackhole() | INSERT 3 | SELECT orders.id AS id, 'c' AS name | INTO o blackhole()
CREATE TABLE orders (
    id BIGINT, user_id BIGINT, currency STRING, price DECIMAL(10, 2), items ARRAY<STRING>,
    ts TIMESTAMP(3), proc_time AS PROCTIME(), WATERMARK FOR ts AS ts - INTERVAL '5' SECOND
) WITH (
    'connector' = 'kafka', 'topic' = 'orders', 'properties.bootstrap.servers' = 'broker:9092',
    'format' = 'json', 'scan.startup.mode' = 'earliest-offset'
);
CREATE TABLE o (id BIGINT, name STRING) WITH ('connector' = 'blackhole');
EXECUTE STATEMENT SET BEGIN INSERT INTO o SELECT id, 'a' FROM orders UNION ALL SELECT id, 'b' FROM orders; INSERT INTO o SELECT id, 'c' FROM orders; END;
