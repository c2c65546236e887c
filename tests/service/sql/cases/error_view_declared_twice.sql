-- error: view "v" is declared twice
-- fixed: VIEW v AS SELECT k FROM => VIEW v2 AS SELECT k FROM
-- with: d_price s_plain out_bigint_string
CREATE VIEW v AS SELECT k, p FROM s;
CREATE VIEW v AS SELECT k FROM s;
