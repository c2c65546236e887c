-- error: column "p" is already in table "base"
-- fixed: LIKE base => LIKE base (OVERWRITING GENERATED)
-- with: base
CREATE TABLE s (p AS PROCTIME()) LIKE base;
