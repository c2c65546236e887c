-- error: CREATE CATALOG is not supported
-- fixed: CREATE CATALOG c WITH ('type' = 'jdbc'); =>
CREATE CATALOG c WITH ('type' = 'jdbc');
