-- error: column "n" is already in table "base"
-- fixed: (n INT) => (n2 INT)
-- with: base
CREATE TABLE s (n INT) LIKE base;
