-- error: path "abfss://lake@shop.dfs.core.windows.net/o" has the storage account already
-- fixed: , 'azure.account' = 'other' => 
-- with: d_of_secret s_key
CREATE TABLE o (x BIGINT) WITH ('connector' = 'delta', 'path' = 'abfss://lake@shop.dfs.core.windows.net/o', 'azure.account' = 'other');
INSERT INTO o SELECT s.k
FROM s JOIN d FOR SYSTEM_TIME AS OF s.p ON s.k = d.id;
