-- error: Did you mean "base"?
-- with: base
CREATE TABLE s LIKE bass;
