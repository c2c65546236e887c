-- error: expected what of the table is meant
-- fixed: INDEXES => CONSTRAINTS
-- with: base
CREATE TABLE s LIKE base (INCLUDING INDEXES);
