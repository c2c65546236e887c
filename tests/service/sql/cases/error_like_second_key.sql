-- error: has a primary key already
-- fixed: LIKE d => LIKE d (EXCLUDING CONSTRAINTS)
-- with: d_price
CREATE TABLE e (PRIMARY KEY (name) NOT ENFORCED) LIKE d;
