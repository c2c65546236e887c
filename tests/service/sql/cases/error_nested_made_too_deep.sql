-- error: nested more than 16 levels deep
-- fixed: ROW(ROW(ROW(ROW(ROW(ROW(ROW(ROW(ROW(ROW(ROW(ROW(ROW(ROW(ROW(ROW(n)))))))))))))))) => n
-- with: d_named s_nested out_bigint
INSERT INTO o SELECT k FROM s JOIN d FOR SYSTEM_TIME AS OF s.p ON s.k = d.id WHERE ROW(ROW(ROW(ROW(ROW(ROW(ROW(ROW(ROW(ROW(ROW(ROW(ROW(ROW(ROW(ROW(n)))))))))))))))) IS NULL;
