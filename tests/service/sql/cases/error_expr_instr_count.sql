-- error: INSTR takes 2 to 4 arguments, not 1
-- fixed: INSTR(t) => INSTR(t, 'a')
-- with: d_priced s_all_types out_int
INSERT INTO o SELECT INSTR(t)
FROM s JOIN d FOR SYSTEM_TIME AS OF s.p ON s.k = d.id;
