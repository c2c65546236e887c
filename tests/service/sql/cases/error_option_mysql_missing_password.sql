-- error: option "password" is missing
-- with: s_key … out_bigint join_k
CREATE TABLE d (id BIGINT PRIMARY KEY NOT ENFORCED) WITH ('connector' = 'mysql-cdc', 'hostname' = 'h', 'username' = 'u', 'database-name' = 'a', 'table-name' = 'b');
