-- error: table "s" is read with different OPTIONS: option "scan.startup.mode" is "earliest-offset" and "latest-offset"
-- fixed:  /*+ OPTIONS('scan.startup.mode' = 'latest-offset') */ =>
-- with: d_price s_plain out_bigint_string
EXECUTE STATEMENT SET BEGIN
INSERT INTO o SELECT s.k, d.name FROM s JOIN d FOR SYSTEM_TIME AS OF s.p ON s.k = d.id;
INSERT INTO o SELECT s.k, d.name FROM s /*+ OPTIONS('scan.startup.mode' = 'latest-offset') */
    JOIN d FOR SYSTEM_TIME AS OF s.p ON s.k = d.id;
END;
