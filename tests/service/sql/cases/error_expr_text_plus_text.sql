-- error: Join texts with || or CONCAT
-- fixed: t + t => t || t
-- with: d_priced s_all_types out_string
INSERT INTO o SELECT t + t
FROM s JOIN d FOR SYSTEM_TIME AS OF s.p ON s.k = d.id;
