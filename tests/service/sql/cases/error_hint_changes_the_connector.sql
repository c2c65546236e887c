-- error: the hint changes the connector
-- fixed:  /*+ OPTIONS('connector'='datagen') */ => 
-- with: d_price s_plain out_bigint_string
INSERT INTO o SELECT s.k, d.name FROM s /*+ OPTIONS('connector'='datagen') */ JOIN d FOR SYSTEM_TIME AS OF s.p ON s.k = d.id;
