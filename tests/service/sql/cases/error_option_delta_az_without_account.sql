-- error: path "az://lake/o" does not name a storage account
-- fixed: 'az://lake/o' => 'az://lake/o', 'azure.account' = 'shop'
-- with: d_of_secret s_key … join_k
CREATE TABLE o (x BIGINT) WITH ('connector' = 'delta', 'path' = 'az://lake/o');
