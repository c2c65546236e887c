-- plan: INTO o delta(abfss://lake@shop.dfs.core.windows.net/o)
-- with: d_of_secret s_key
CREATE TABLE o (x BIGINT) WITH ('connector' = 'delta', 'path' = 'abfss://lake@shop.dfs.core.windows.net/o', 'azure.account-key' = '${secret:key}');
INSERT INTO o SELECT s.k
FROM s JOIN d FOR SYSTEM_TIME AS OF s.p ON s.k = d.id;
