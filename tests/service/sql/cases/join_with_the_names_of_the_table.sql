-- plan: LEFT JOIN d AS d mysql-cdc(shop.items @ db:3306) [id BIGINT NOT NULL; key id] ON s.k = d.id | SELECT s.k AS k, CASE WHEN (d.id IS NOT NULL) THEN 'shop' END AS db, CASE WHEN (d.id IS NOT NULL) THEN 'items' END AS t | INTO o blackhole()
-- with: s_key
CREATE TABLE d (id BIGINT PRIMARY KEY NOT ENFORCED, database_name STRING METADATA VIRTUAL, t STRING NOT NULL METADATA FROM 'table_name') WITH (
    'connector' = 'mysql-cdc', 'server-id' = '81604378631',
    'hostname' = 'db', 'username' = 'cdc', 'password' = '${secret:shop}',
    'database-name' = 'shop', 'table-name' = 'items'
);
CREATE TABLE o (k BIGINT, db STRING, t STRING) WITH ('connector' = 'blackhole');
INSERT INTO o SELECT s.k, d.database_name, d.t FROM s LEFT JOIN d FOR SYSTEM_TIME AS OF s.p AS d ON s.k = d.id;
