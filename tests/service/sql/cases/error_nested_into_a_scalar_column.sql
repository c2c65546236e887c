-- error: Take a scalar value out of it
-- fixed: SELECT payload FROM => SELECT payload.`user`.mail FROM
-- with: d_named s_nested out_string
INSERT INTO o SELECT payload FROM s JOIN d FOR SYSTEM_TIME AS OF s.p ON s.k = d.id;
