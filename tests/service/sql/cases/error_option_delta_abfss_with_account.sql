-- error: path "abfss://lake@shop.dfs.core.windows.net/o" has the storage account already
-- fixed: , 'azure.account' = 'other' => 
-- with: d_of_secret s_key … join_k
CREATE TABLE o (x BIGINT) WITH ('connector' = 'delta', 'path' = 'abfss://lake@shop.dfs.core.windows.net/o', 'azure.account' = 'other');
