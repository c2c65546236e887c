-- error: expected TABLE or VIEW
DROP DATABASE x;
