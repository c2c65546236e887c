-- error: a comma join keeps the rows of both sides
-- with: d_priced s_all_types out_bigint
INSERT INTO o SELECT k FROM s, d WHERE s.k = d.id;
