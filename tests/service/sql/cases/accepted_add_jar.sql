-- warning: ADD JAR has no effect: connectors are built in, and code cannot be added to a job.
-- with: orders out_id_name
ADD JAR '/opt/a.jar';
INSERT INTO o SELECT id, currency FROM orders;
