-- error: table "d" is jdbc, which cannot be the stream
-- fixed: 'connector' = 'jdbc', 'url' = 'jdbc:mysql://db:3306/shop', 'username' = 'u', 'password' = '${secret:x}', 'table-name' = 'd' => 'connector' = 'kafka', 'topic' = 'shop.d', 'properties.bootstrap.servers' = 'b:9092', 'format' = 'debezium-json'
-- with: out_bigint
CREATE TABLE d (id BIGINT, PRIMARY KEY (id) NOT ENFORCED) WITH ('connector' = 'jdbc', 'url' = 'jdbc:mysql://db:3306/shop', 'username' = 'u', 'password' = '${secret:x}', 'table-name' = 'd');
INSERT INTO o SELECT id FROM d;
