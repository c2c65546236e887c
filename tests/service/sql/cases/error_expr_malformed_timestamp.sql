-- error: malformed TIMESTAMP literal
-- with: d_priced s_all_types out_timestamp
INSERT INTO o SELECT TIMESTAMP 'yesterday'
FROM s JOIN d FOR SYSTEM_TIME AS OF s.p ON s.k = d.id;
