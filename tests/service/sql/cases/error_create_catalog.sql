-- error: CREATE CATALOG is not supported
CREATE CATALOG c WITH ('type' = 'jdbc');
