-- error: USE statements are not supported
-- fixed: USE CATALOG c; => 
USE CATALOG c;
