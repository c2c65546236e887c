-- error: Use single quotes for text and backticks for names.
-- fixed: "k" => `k`
-- with: d_priced s_all_types out_bigint
INSERT INTO o SELECT "k"
FROM s JOIN d FOR SYSTEM_TIME AS OF s.p ON s.k = d.id;
