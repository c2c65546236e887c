-- error: a key in single quotes
-- fixed: pipeline.name => 'pipeline.name'
RESET pipeline.name;
