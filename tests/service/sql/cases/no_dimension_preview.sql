-- plan: SELECT s.k AS k, s.n AS n, s.t AS t, s.p AS p | INTO preview print(, 100 rows)
-- with: s_plain
SELECT * FROM s;
