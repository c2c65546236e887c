-- error: path "az://lake/o" does not name a storage account
-- fixed: 'az://lake/o' => 'az://lake/o', 'azure.account' = 'shop'
-- with: d_of_secret s_key
CREATE TABLE o (x BIGINT) WITH ('connector' = 'delta', 'path' = 'az://lake/o');
INSERT INTO o SELECT s.k
FROM s JOIN d FOR SYSTEM_TIME AS OF s.p ON s.k = d.id;
