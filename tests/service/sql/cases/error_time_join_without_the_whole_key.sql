-- error: needs column "shop" of the primary key of table "d"
-- fixed: ON s.k = d.id => ON s.k = d.id AND s.n = d.shop
-- with: s_event_time out_bigint_string … join_name_of_time
CREATE TABLE d (id BIGINT, shop INT, name STRING, since TIMESTAMP(3), PRIMARY KEY (id, shop) NOT ENFORCED, WATERMARK FOR since AS since) WITH (
    'connector' = 'mysql-cdc', 'hostname' = 'db', 'username' = 'cdc', 'password' = '${secret:shop}',
    'database-name' = 'shop', 'table-name' = 'd'
);
