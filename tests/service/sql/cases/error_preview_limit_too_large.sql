-- error: Give a whole number from 1 to 10000
-- fixed: 100000 => 10000
-- with: d_price s_plain
SELECT k FROM s JOIN d FOR SYSTEM_TIME AS OF s.p ON s.k = d.id LIMIT 100000;
