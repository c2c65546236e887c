-- plan: LEFT JOIN d AS d mysql-cdc(shop.(orders|items)_[0-9]{1,3} @ db:3306) [table_name STRING NOT NULL, id BIGINT NOT NULL; key table_name, id] ON s.k = d.id | SELECT s.k AS k, CASE WHEN (d.table_name IS NOT NULL) THEN 'shop' END AS db, d.table_name AS t | INTO o blackhole()
-- with: s_key
CREATE TABLE d (database_name STRING METADATA, table_name STRING METADATA, id BIGINT PRIMARY KEY NOT ENFORCED) WITH (
    'connector' = 'mysql-cdc', 'hostname' = 'db', 'username' = 'cdc', 'password' = '${secret:shop}',
    'database-name' = 'shop', 'table-name' = '(orders|items)_[0-9]{1,3}'
);
CREATE TABLE o (k BIGINT, db STRING, t STRING) WITH ('connector' = 'blackhole');
INSERT INTO o SELECT s.k, d.database_name, d.table_name FROM s LEFT JOIN d FOR SYSTEM_TIME AS OF s.p AS d ON s.k = d.id;
