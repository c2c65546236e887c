-- error: the statement set has no INSERT INTO
-- fixed: BEGIN END => BEGIN INSERT INTO o SELECT s.k, d.name FROM s JOIN d FOR SYSTEM_TIME AS OF s.p ON s.k = d.id; END
-- with: d_price s_plain out_bigint_string
EXECUTE STATEMENT SET BEGIN END;
