-- error: expected INSERT INTO or END
-- fixed: s.k = d.id; => s.k = d.id; END;
-- with: d_price s_plain out_bigint_string
EXECUTE STATEMENT SET BEGIN
INSERT INTO o SELECT s.k, d.name FROM s JOIN d FOR SYSTEM_TIME AS OF s.p ON s.k = d.id;
