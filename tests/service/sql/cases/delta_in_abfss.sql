-- plan: INTO o delta(abfss://lake@shop.dfs.core.windows.net/o)
-- with: d_of_secret s_key … join_k
CREATE TABLE o (x BIGINT) WITH ('connector' = 'delta', 'path' = 'abfss://lake@shop.dfs.core.windows.net/o', 'azure.account-key' = '${secret:key}');
