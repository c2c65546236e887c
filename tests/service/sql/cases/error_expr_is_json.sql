-- error: expected NULL, TRUE, FALSE, UNKNOWN, JSON or DISTINCT FROM
-- fixed: IS XML => IS NOT NULL
-- with: d_priced s_all_types out_boolean
INSERT INTO o SELECT t IS XML
FROM s JOIN d FOR SYSTEM_TIME AS OF s.p ON s.k = d.id;
