-- plan: LEFT JOIN d AS d mysql-cdc(db_[0-9]+.t_.* @ db:3306) [shop STRING NOT NULL, t STRING NOT NULL, at TIMESTAMP_LTZ(3) NOT NULL, id BIGINT NOT NULL; key shop, t, id] ON s.k = d.id | SELECT s.k AS k, d.shop AS shop, d.t AS t, d.at AS at | INTO o blackhole()
-- with: s_key
CREATE TABLE d (shop STRING METADATA FROM 'database_name', t STRING NOT NULL METADATA FROM 'table_name' VIRTUAL, at TIMESTAMP_LTZ(3) METADATA FROM 'op_ts', id BIGINT, PRIMARY KEY (shop, t, id) NOT ENFORCED) WITH (
    'connector' = 'mysql-cdc', 'hostname' = 'db', 'username' = 'cdc', 'password' = '${secret:shop}',
    'database-name' = 'db_[0-9]+', 'table-name' = 't_.*'
);
CREATE TABLE o (k BIGINT, shop STRING, t STRING, at TIMESTAMP_LTZ(3)) WITH ('connector' = 'blackhole');
INSERT INTO o SELECT s.k, d.shop, d.t, d.at FROM s LEFT JOIN d FOR SYSTEM_TIME AS OF s.p AS d ON s.k = d.id;
