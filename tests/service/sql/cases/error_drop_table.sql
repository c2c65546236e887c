-- error: DROP statements are not supported
DROP TABLE s;
