-- error: unknown time zone "Mars"
-- fixed: 'Mars' => 'Europe/Berlin'
-- with: d_priced s_all_types out_string
INSERT INTO o SELECT CONVERT_TZ(t, 'UTC', 'Mars')
FROM s JOIN d FOR SYSTEM_TIME AS OF s.p ON s.k = d.id;
