-- plan: INNER JOIN d AS x mysql-cdc(shop.d @ db:3306) [id BIGINT NOT NULL, name STRING, price DECIMAL(10, 2), since TIMESTAMP(3); key id] ON s.k = x.id
-- with: d_versions s_event_time out_bigint_string
INSERT INTO o SELECT s.k, x.name FROM s JOIN LATERAL SNAPSHOT(input => TABLE d, on_time => DESCRIPTOR(since)) AS x ON s.k = x.id;
