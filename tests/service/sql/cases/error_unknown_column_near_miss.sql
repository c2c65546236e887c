-- error: Did you mean "amount"?
-- fixed: amuont => amount
-- fixed: (x BIGINT) => (x DECIMAL(8, 3))
-- with: d_priced s_all_types out_bigint
INSERT INTO o SELECT amuont FROM s JOIN d FOR SYSTEM_TIME AS OF s.p ON s.k = d.id;
