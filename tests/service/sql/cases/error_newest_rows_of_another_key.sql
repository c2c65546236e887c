-- error: needs all rows of a key that is not the PRIMARY KEY (id)
-- fixed: PARTITION BY name => PARTITION BY id
-- with: s_plain d_since out_bigint_string
CREATE VIEW v AS SELECT id, name FROM (SELECT *, ROW_NUMBER() OVER (PARTITION BY name ORDER BY since DESC) AS n FROM d) WHERE n = 1;
INSERT INTO o SELECT s.k, v.name FROM s JOIN v FOR SYSTEM_TIME AS OF s.p ON s.k = v.id;
