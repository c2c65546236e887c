-- error: column "p" is already in table "base"
-- with: base
CREATE TABLE s (p AS PROCTIME()) LIKE base;
