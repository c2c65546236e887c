-- error: malformed TIMESTAMP literal
-- fixed: 'yesterday' => '2024-01-31 23:59:59'
-- with: d_priced s_all_types out_timestamp
INSERT INTO o SELECT TIMESTAMP 'yesterday'
FROM s JOIN d FOR SYSTEM_TIME AS OF s.p ON s.k = d.id;
