-- plan: FROM s AS c kafka(s @ broker:9092, timestamp, 42 ms) [k BIGINT, n INT, t STRING, p = PROCTIME()] | INNER JOIN d AS d mysql-cdc(shop.e @ db:3306) [id BIGINT NOT NULL, name STRING, price DECIMAL(10, 2); key id] ON c.k = d.id
-- with: d_price s_plain out_bigint_string
INSERT INTO o SELECT c.k, d.name FROM s /*+ OPTIONS('scan.startup.mode' = 'timestamp', 'scan.startup.timestamp-millis' = '42') */ AS c JOIN d /*+ OPTIONS('table-name' = 'e') */ FOR SYSTEM_TIME AS OF c.p ON c.k = d.id;
