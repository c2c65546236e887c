-- error: table "o" takes over the options of "s", and connector "blackhole" has no option "topic"
-- fixed: LIKE s; => LIKE s (EXCLUDING OPTIONS);
-- with: s_key
CREATE TABLE o WITH ('connector' = 'blackhole') LIKE s;
INSERT INTO o SELECT k FROM s;
