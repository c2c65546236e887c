-- error: CREATE FUNCTION is not supported
-- fixed: CREATE TEMPORARY SYSTEM FUNCTION f AS 'com.example.F'; =>
CREATE TEMPORARY SYSTEM FUNCTION f AS 'com.example.F';
