-- error: not usable for topics and directories
CREATE TABLE `../x` (a INT) WITH ('connector' = 'print');
