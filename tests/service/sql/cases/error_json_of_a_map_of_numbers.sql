-- error: JSON_STRING takes no MAP<INT, INT>
-- fixed: MAP[1, n] => MAP['1', n]
-- with: d_priced s_all_types out_string
INSERT INTO o SELECT JSON_STRING(MAP[1, n])
FROM s JOIN d FOR SYSTEM_TIME AS OF s.p ON s.k = d.id;
