-- error: option "azure.endpoint" needs an access key in the table's options
-- fixed: 'azure.endpoint' => 'azure.account-key' = '${secret:key}', 'azure.endpoint'
-- with: d_of_secret s_key … join_k
CREATE TABLE o (x BIGINT) WITH ('connector' = 'delta', 'path' = 'abfss://lake@shop.dfs.core.windows.net/o', 'azure.endpoint' = 'http://azurite:10000');
