-- error: Did you mean "CREATE"?
CREAT TABLE x (a INT) WITH ('connector' = 'print');
