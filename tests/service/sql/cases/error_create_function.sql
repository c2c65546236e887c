-- error: CREATE FUNCTION is not supported
CREATE TEMPORARY SYSTEM FUNCTION f AS 'com.example.F';
