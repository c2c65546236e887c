-- error: table "d" has other OPTIONS into "o" than in an INSERT before
-- fixed:  /*+ OPTIONS('table-name' = 'e') */ =>
-- with: d_price s_plain out_bigint_string
EXECUTE STATEMENT SET BEGIN
INSERT INTO o SELECT s.k, d.name FROM s JOIN d FOR SYSTEM_TIME AS OF s.p ON s.k = d.id;
INSERT INTO o SELECT s.k, d.name FROM s
    JOIN d /*+ OPTIONS('table-name' = 'e') */ FOR SYSTEM_TIME AS OF s.p ON s.k = d.id;
END;
