-- error: not usable for topics and directories
-- fixed: `../x` => x
CREATE TABLE `../x` (a INT) WITH ('connector' = 'print');
