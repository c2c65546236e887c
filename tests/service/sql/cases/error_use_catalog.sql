-- error: USE statements are not supported
USE CATALOG c;
