-- error: option "topic" is already in table "base"
-- fixed: (INCLUDING ALL) => (OVERWRITING OPTIONS)
-- with: base
CREATE TABLE s WITH ('topic' = 'x') LIKE base (INCLUDING ALL);
