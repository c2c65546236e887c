-- error: column "b" of "o" is NOT NULL and gets no value
-- fixed: (a) SELECT k => (a, b) SELECT k, k
-- with: d_small s_key
CREATE TABLE o (a BIGINT, b BIGINT NOT NULL) WITH ('connector' = 'print');
INSERT INTO o (a) SELECT k FROM s JOIN d FOR SYSTEM_TIME AS OF s.p ON s.k = d.id;
