-- plan: INTO o delta(az://lake/o)
-- with: d_of_secret s_key … join_k
CREATE TABLE o (x BIGINT) WITH ('connector' = 'delta', 'path' = 'az://lake/o', 'azure.account' = 'shop', 'azure.sas-token' = '${secret:key}', 'azure.endpoint' = 'http://azurite:10000/shop');
