-- s_all_types
CREATE TABLE s (
    k BIGINT, n INT, tiny TINYINT, t STRING, amount DECIMAL(8, 3), r DOUBLE, f FLOAT, ok BOOLEAN,
    b BYTES, dt DATE, tm TIME, ts TIMESTAMP(3), inst TIMESTAMP_LTZ(3), p AS PROCTIME()
) WITH (
    'connector' = 'kafka', 'topic' = 's', 'properties.bootstrap.servers' = 'broker:9092',
    'format' = 'json', 'scan.startup.mode' = 'earliest-offset'
);
-- d_priced
CREATE TABLE d (
    id BIGINT, name STRING, price DECIMAL(10, 2), level INT, since TIMESTAMP(3),
    PRIMARY KEY (id) NOT ENFORCED
) WITH (
    'connector' = 'mysql-cdc', 'hostname' = 'db', 'username' = 'cdc', 'password' = '${secret:shop}',
    'database-name' = 'shop', 'table-name' = 'd'
);
-- d_small
CREATE TABLE d (id BIGINT PRIMARY KEY NOT ENFORCED, name STRING) WITH (
    'connector' = 'mysql-cdc',
    'hostname' = 'db', 'username' = 'cdc', 'password' = 'x',
    'database-name' = 'shop', 'table-name' = 'd'
);
-- s_event_time
CREATE TABLE s (k BIGINT, n INT, amount DECIMAL(8, 3), t STRING, ts TIMESTAMP(3), p AS PROCTIME(), WATERMARK FOR ts AS ts - INTERVAL '5' SECOND) WITH (
    'connector' = 'kafka', 'topic' = 's', 'properties.bootstrap.servers' = 'broker:9092', 'format' = 'json',
    'scan.startup.mode' = 'earliest-offset'
);
-- orders
CREATE TABLE orders (
    id BIGINT, user_id BIGINT, currency STRING, price DECIMAL(10, 2), items ARRAY<STRING>,
    ts TIMESTAMP(3), proc_time AS PROCTIME(), WATERMARK FOR ts AS ts - INTERVAL '5' SECOND
) WITH (
    'connector' = 'kafka', 'topic' = 'orders', 'properties.bootstrap.servers' = 'broker:9092',
    'format' = 'json', 'scan.startup.mode' = 'earliest-offset'
);
-- s_key
CREATE TABLE s (k BIGINT, p AS PROCTIME()) WITH (
    'connector' = 'kafka', 'topic' = 's', 'properties.bootstrap.servers' = 'broker:9092', 'format' = 'json',
    'scan.startup.mode' = 'earliest-offset'
);
-- s_plain
CREATE TABLE s (k BIGINT, n INT, t STRING, p AS PROCTIME()) WITH (
    'connector' = 'kafka', 'topic' = 's', 'properties.bootstrap.servers' = 'broker:9092',
    'format' = 'json', 'scan.startup.mode' = 'earliest-offset'
);
-- d_price
CREATE TABLE d (id BIGINT PRIMARY KEY NOT ENFORCED, name STRING, price DECIMAL(10, 2)) WITH (
    'connector' = 'mysql-cdc', 'hostname' = 'db', 'username' = 'cdc', 'password' = '${secret:shop}',
    'database-name' = 'shop', 'table-name' = 'd'
);
-- d_since
CREATE TABLE d (id BIGINT, name STRING, price DECIMAL(10, 2), since TIMESTAMP(3), PRIMARY KEY (id) NOT ENFORCED) WITH (
    'connector' = 'mysql-cdc', 'hostname' = 'db', 'username' = 'cdc', 'password' = '${secret:shop}',
    'database-name' = 'shop', 'table-name' = 'd'
);
-- d_named
CREATE TABLE d (id BIGINT, name STRING, PRIMARY KEY (id) NOT ENFORCED) WITH (
    'connector' = 'mysql-cdc', 'hostname' = 'db', 'username' = 'cdc', 'password' = '${secret:shop}',
    'database-name' = 'shop', 'table-name' = 'd'
);
-- s_nested
CREATE TABLE s (
    payload ROW<user_id BIGINT, `user` ROW<id BIGINT, mail STRING NOT NULL>, at_ms BIGINT>,
    items ARRAY<ROW<sku STRING, n INT>>, labels MAP<STRING, STRING>, n INT, k BIGINT, p AS PROCTIME()
) WITH (
    'connector' = 'kafka', 'topic' = 's', 'properties.bootstrap.servers' = 'broker:9092',
    'format' = 'json', 'scan.startup.mode' = 'earliest-offset'
);
-- d_all_keys
CREATE TABLE d (id INT PRIMARY KEY NOT ENFORCED, dec DECIMAL(6, 2), whole DECIMAL(6, 0), big BIGINT, f FLOAT, r DOUBLE, day_ DATE, ts TIMESTAMP(3), ts6 TIMESTAMP(6)) WITH (
    'connector' = 'mysql-cdc',
    'hostname' = 'db', 'username' = 'cdc', 'password' = 'x',
    'database-name' = 'shop', 'table-name' = 'd'
);
-- carts
CREATE TABLE carts (
    id BIGINT, tags ARRAY<STRING>, items ARRAY<ROW<sku STRING, size INT>>, labels MAP<STRING, STRING>,
    note STRING, p AS PROCTIME()
) WITH (
    'connector' = 'kafka', 'topic' = 'carts', 'properties.bootstrap.servers' = 'broker:9092',
    'format' = 'json', 'scan.startup.mode' = 'earliest-offset'
);
-- page_views
CREATE TABLE page_views (
    view_id   BIGINT,
    user_id   BIGINT,
    url       STRING,
    referrer  STRING,
    device    ROW<os STRING, width INT, languages ARRAY<STRING>>,
    viewed_at TIMESTAMP(3),
    proc      AS PROCTIME(),
    WATERMARK FOR viewed_at AS viewed_at - INTERVAL '10' SECOND
) WITH (
    'connector' = 'kafka',
    'topic' = 'page_views',
    'properties.bootstrap.servers' = 'broker:9092',
    'scan.startup.mode' = 'earliest-offset',
    'format' = 'json'
);
-- s_with_id
CREATE TABLE s (k BIGINT, id STRING, p AS PROCTIME()) WITH (
    'connector' = 'kafka', 'topic' = 's', 'properties.bootstrap.servers' = 'broker:9092',
    'scan.startup.mode' = 'earliest-offset', 'format' = 'json'
);
-- d_versions
CREATE TABLE d (id BIGINT, name STRING, price DECIMAL(10, 2), since TIMESTAMP(3), PRIMARY KEY (id) NOT ENFORCED, WATERMARK FOR since AS since) WITH (
    'connector' = 'mysql-cdc', 'hostname' = 'db', 'username' = 'cdc', 'password' = '${secret:shop}',
    'database-name' = 'shop', 'table-name' = 'd'
);
-- payments
CREATE TABLE payments (
    payment_id STRING,
    account STRING,
    amount DECIMAL(18, 2),
    currency CHAR(3),
    method STRING,
    paid_at TIMESTAMP_LTZ(3),
    proc_time AS PROCTIME(),
    WATERMARK FOR paid_at AS paid_at - INTERVAL '30' SECOND
) WITH (
    'connector' = 'kafka',
    'topic' = 'payments',
    'properties.bootstrap.servers' = 'broker:9092',
    'scan.startup.mode' = 'earliest-offset',
    'format' = 'json'
);
-- users
CREATE TABLE users (id BIGINT, name STRING, level INT, PRIMARY KEY (id) NOT ENFORCED) WITH (
    'connector' = 'mysql-cdc', 'hostname' = 'db', 'username' = 'cdc', 'password' = '${secret:shop}',
    'database-name' = 'shop', 'table-name' = 'users'
);
-- d_of_secret
CREATE TABLE d (id BIGINT PRIMARY KEY NOT ENFORCED, name STRING) WITH (
    'connector' = 'mysql-cdc',
    'hostname' = 'db', 'username' = 'cdc', 'password' = '${secret:a}',
    'database-name' = 'shop', 'table-name' = 'd'
);
-- orders_of_instants
CREATE TABLE orders (
    id BIGINT, user_id BIGINT, currency STRING, price DECIMAL(10, 2), items ARRAY<STRING>,
    ts TIMESTAMP_LTZ(3), proc_time AS PROCTIME(), WATERMARK FOR ts AS ts - INTERVAL '5' SECOND
) WITH (
    'connector' = 'kafka', 'topic' = 'orders', 'properties.bootstrap.servers' = 'broker:9092',
    'format' = 'json', 'scan.startup.mode' = 'earliest-offset'
);
-- base
CREATE TABLE base (k BIGINT, n INT, t STRING, p AS PROCTIME()) WITH (
    'connector' = 'kafka', 'topic' = 'base', 'properties.bootstrap.servers' = 'broker:9092',
    'format' = 'json', 'scan.startup.mode' = 'earliest-offset'
);
-- nexmark
CREATE TABLE nexmark (event_type INT,
  person ROW<id BIGINT, name VARCHAR, emailAddress VARCHAR, creditCard VARCHAR, city VARCHAR, state VARCHAR, `dateTime` TIMESTAMP(3), extra VARCHAR>,
  auction ROW<id BIGINT, itemName VARCHAR, description VARCHAR, initialBid BIGINT, reserve BIGINT, `dateTime` TIMESTAMP(3), expires TIMESTAMP(3), seller BIGINT, category BIGINT, extra VARCHAR>,
  bid ROW<auction BIGINT, bidder BIGINT, price BIGINT, channel VARCHAR, url VARCHAR, `dateTime` TIMESTAMP(3), extra VARCHAR>,
  `dateTime` AS CASE WHEN event_type = 0 THEN person.`dateTime` WHEN event_type = 1 THEN auction.`dateTime` ELSE bid.`dateTime` END,
  WATERMARK FOR `dateTime` AS `dateTime` - INTERVAL '4' SECOND) WITH ('connector' = 'kafka', 'topic' = 'nexmark', 'properties.bootstrap.servers' = 'broker:9092', 'scan.startup.mode' = 'earliest-offset', 'format' = 'json');
-- d_by_shop
CREATE TABLE d (id BIGINT PRIMARY KEY NOT ENFORCED, name STRING) WITH (
    'connector' = 'mysql-cdc', 'hostname' = 'db', 'username' = 'cdc', 'password' = 'x',
    'database-name' = 'shop', 'table-name' = 'd'
);
-- users_computed
CREATE TABLE users (id BIGINT, name STRING, level INT, upper_name AS UPPER(name), now_time AS PROCTIME(), PRIMARY KEY (id) NOT ENFORCED) WITH (
    'connector' = 'mysql-cdc', 'hostname' = 'db', 'username' = 'cdc', 'password' = '${secret:shop}',
    'database-name' = 'shop', 'table-name' = 'users'
);
-- users_of_shop
CREATE TABLE users (
    user_id BIGINT,
    full_name STRING,
    country STRING,
    is_active BOOLEAN,
    PRIMARY KEY (user_id) NOT ENFORCED
) WITH (
    'connector' = 'mysql-cdc', 'hostname' = 'db', 'port' = '3306',
    'username' = 'cdc', 'password' = '${secret:db}',
    'database-name' = 'shop', 'table-name' = 'users'
);
-- b_topic
CREATE TABLE b (id STRING, amount INT, `of` STRING METADATA FROM 'topic' VIRTUAL, p AS PROCTIME()) WITH (
    'connector' = 'kafka', 'topic' = 'b', 'properties.bootstrap.servers' = 'broker:9092',
    'format' = 'csv', 'scan.startup.mode' = 'earliest-offset'
);
-- a_orders
CREATE TABLE a (id BIGINT, user_id BIGINT, p AS PROCTIME()) WITH (
    'connector' = 'kafka', 'topic' = 'a', 'properties.bootstrap.servers' = 'broker:9092',
    'format' = 'json', 'scan.startup.mode' = 'earliest-offset'
);
-- s_city
CREATE TABLE s (k BIGINT, city STRING, p AS PROCTIME()) WITH (
    'connector' = 'kafka', 'topic' = 's', 'properties.bootstrap.servers' = 'broker:9092',
    'format' = 'json', 'scan.startup.mode' = 'earliest-offset'
);
-- a_plain
CREATE TABLE a (id BIGINT, p AS PROCTIME()) WITH (
    'connector' = 'kafka', 'topic' = 'a', 'properties.bootstrap.servers' = 'broker:9092',
    'format' = 'json', 'scan.startup.mode' = 'earliest-offset'
);
-- d_nested
CREATE TABLE d (
    id BIGINT, address ROW<city STRING, zip INT>, tags ARRAY<STRING>, prices MAP<STRING, ROW<amount DECIMAL(6, 2)>>,
    PRIMARY KEY (id) NOT ENFORCED
) WITH ('connector' = 'delta', 'path' = 'd');
-- readings
CREATE TABLE readings (
    sensor_id STRING,
    celsius DOUBLE COMMENT 'as measured',
    ts_ms BIGINT,
    `timestamp` AS TO_TIMESTAMP_LTZ(ts_ms, 3),
    part INT METADATA FROM 'partition' VIRTUAL,
    WATERMARK FOR `timestamp` AS `timestamp` - INTERVAL '2' SECONDS
) WITH (
    'connector' = 'kafka',
    'topic' = 'readings',
    'properties.bootstrap.servers' = 'broker:9092',
    'scan.startup.mode' = 'earliest-offset',
    'format' = 'json'
);
-- s_event_variant
CREATE TABLE s (k BIGINT, n INT, amount DECIMAL(8, 3), t STRING, ts TIMESTAMP(3), p AS PROCTIME(), WATERMARK FOR ts AS ts - INTERVAL '5' SECOND) WITH (
    'connector' = 'kafka', 'topic' = 's', 'properties.bootstrap.servers' = 'broker:9092', 'format' = 'json',
    'scan.startup.mode' = 'earliest-offset', 'scan.watermark.use-processing-time' = 'after-backlog'
);
-- s_payload_time
CREATE TABLE s (payload ROW<id BIGINT, ts TIMESTAMP(3)>, tags ARRAY<STRING>, ts AS payload.ts,
    WATERMARK FOR ts AS ts - INTERVAL '5' SECOND) WITH (
    'connector' = 'kafka', 'topic' = 's', 'properties.bootstrap.servers' = 'broker:9092',
    'format' = 'json', 'scan.startup.mode' = 'earliest-offset'
);
-- probe_and_build
CREATE TABLE probe (pk STRING, pv INT, pts TIMESTAMP(3), WATERMARK FOR pts AS pts) WITH (
    'connector' = 'kafka', 'topic' = 'probe', 'properties.bootstrap.servers' = 'broker:9092',
    'format' = 'json', 'scan.startup.mode' = 'earliest-offset'
);
CREATE TABLE b (bk STRING, bv INT, bts TIMESTAMP(3), WATERMARK FOR bts AS bts) WITH (
    'connector' = 'kafka', 'topic' = 'b', 'properties.bootstrap.servers' = 'broker:9092',
    'format' = 'json'
);
CREATE TABLE sink (pk STRING, pv INT, bk STRING, bv INT) WITH ('connector' = 'blackhole');
-- rates_history
CREATE TABLE rates_history (currency STRING, conversion_rate DECIMAL(32, 2), update_time TIMESTAMP(3), came AS PROCTIME(), WATERMARK FOR update_time AS update_time) WITH (
    'connector' = 'kafka', 'topic' = 'rates', 'properties.bootstrap.servers' = 'broker:9092', 'format' = 'json'
);
CREATE TABLE priced (id BIGINT, rate DECIMAL(32, 2)) WITH ('connector' = 'blackhole');
-- out_bigint
CREATE TABLE o (x BIGINT) WITH ('connector' = 'blackhole');
-- out_bigint_string
CREATE TABLE o (x BIGINT, y STRING) WITH ('connector' = 'blackhole');
-- out_id_name
CREATE TABLE o (id BIGINT, name STRING) WITH ('connector' = 'blackhole');
-- out_string
CREATE TABLE o (x STRING) WITH ('connector' = 'blackhole');
-- out_at_bigint
CREATE TABLE o (at TIMESTAMP(3), x BIGINT) WITH ('connector' = 'blackhole');
-- out_boolean
CREATE TABLE o (x BOOLEAN) WITH ('connector' = 'blackhole');
-- out_windows
CREATE TABLE o (at TIMESTAMP(3), until TIMESTAMP(3), c STRING, n BIGINT) WITH ('connector' = 'blackhole');
-- out_int
CREATE TABLE o (x INT) WITH ('connector' = 'blackhole');
-- out_timestamp
CREATE TABLE o (x TIMESTAMP(3)) WITH ('connector' = 'blackhole');
-- join_k
INSERT INTO o SELECT s.k
FROM s JOIN d FOR SYSTEM_TIME AS OF s.p ON s.k = d.id;
-- join_name
INSERT INTO o SELECT s.k, d.name FROM s JOIN d FOR SYSTEM_TIME AS OF s.p ON s.k = d.id;
-- join_name_of_time
INSERT INTO o SELECT s.k, d.name FROM s JOIN d FOR SYSTEM_TIME AS OF s.ts ON s.k = d.id;
-- join_rates
INSERT INTO o SELECT o.id, r.currency, r.conversion_rate FROM orders AS o
LEFT JOIN rates FOR SYSTEM_TIME AS OF o.ts AS r ON o.currency = r.currency;
-- count_minutes
INSERT INTO o SELECT window_start, k, COUNT(*)
FROM TABLE(TUMBLE(TABLE s, DESCRIPTOR(ts), INTERVAL '1' MINUTE))
GROUP BY window_start, window_end, k;
-- cards
CREATE TABLE cards (
    payment_id STRING, amount DECIMAL(18, 2)
) WITH ('connector' = 'delta', 'path' = 'cards');
-- subscriptions
CREATE TEMPORARY TABLE subscriptions (
    `id` STRING,
    `user_id` INT,
    `type` STRING,
    `start_date` TIMESTAMP(3),
    `end_date` TIMESTAMP(3),
    `payment_expiration` TIMESTAMP(3),
    `proc_time` AS PROCTIME()
) WITH ('connector' = 'kafka', 'topic' = 'subscriptions', 'properties.bootstrap.servers' = 'broker:9092', 'scan.startup.mode' = 'earliest-offset', 'format' = 'json');
-- members
CREATE TEMPORARY TABLE members (
    `user_id` INT PRIMARY KEY,
    `user_name` VARCHAR(255) NOT NULL,
    `age` INT NOT NULL,
    `segment` VARCHAR(20)
) WITH ('connector' = 'mysql-cdc', 'hostname' = 'db', 'username' = 'cdc', 'password' = '${secret:db}', 'database-name' = 'shop', 'table-name' = 'members');
-- users_2
CREATE TABLE users (id BIGINT, name STRING, PRIMARY KEY (id) NOT ENFORCED) WITH (
    'connector' = 'mysql-cdc', 'hostname' = 'db', 'username' = 'cdc', 'password' = '${secret:shop}',
    'database-name' = 'shop', 'table-name' = 'users'
);
