-- plan: SELECT s.k AS x | WHERE IN(s.items, s.items, s.items)
-- with: d_named s_nested out_bigint
INSERT INTO o SELECT k FROM s JOIN d FOR SYSTEM_TIME AS OF s.p ON s.k = d.id WHERE items IN (items, items);
