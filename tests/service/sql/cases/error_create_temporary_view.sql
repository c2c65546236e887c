-- error: CREATE VIEW is not supported
CREATE TEMPORARY VIEW v AS SELECT 1;
