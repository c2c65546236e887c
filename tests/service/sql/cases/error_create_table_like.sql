-- error: CREATE TABLE … LIKE is not supported
CREATE TABLE t LIKE s;
