-- error: "ts" is TIMESTAMP(3), not the stream's PROCTIME() column
-- fixed: AS OF s.ts => AS OF s.p
-- with: d_priced s_all_types out_bigint
INSERT INTO o SELECT k FROM s JOIN d FOR SYSTEM_TIME AS OF s.ts ON s.k = d.id;
