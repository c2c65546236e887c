-- error: has a primary key already
-- fixed: LIKE d => LIKE d (EXCLUDING CONSTRAINTS)
CREATE TABLE d (id BIGINT PRIMARY KEY NOT ENFORCED, name STRING, price DECIMAL(10, 2)) WITH (
    'connector' = 'mysql-cdc', 'hostname' = 'db', 'username' = 'cdc', 'password' = '${secret:shop}',
    'database-name' = 'shop', 'table-name' = 'd'
);
CREATE TABLE e (PRIMARY KEY (name) NOT ENFORCED) LIKE d;
