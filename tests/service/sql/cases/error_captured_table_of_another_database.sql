-- error: unknown connector "postgres-cdc"
-- with: out_bigint
CREATE TABLE d (id BIGINT PRIMARY KEY NOT ENFORCED) WITH ('connector' = 'postgres-cdc', 'hostname' = 'db', 'username' = 'cdc', 'password' = '${secret:shop}', 'database-name' = 'shop', 'schema-name' = 'public', 'table-name' = 'd');
INSERT INTO o SELECT id FROM d;
