-- error: Its value would differ when a batch is repeated
-- fixed: UUID() => t
-- with: d_priced s_all_types out_string
INSERT INTO o SELECT UUID()
FROM s JOIN d FOR SYSTEM_TIME AS OF s.p ON s.k = d.id;
