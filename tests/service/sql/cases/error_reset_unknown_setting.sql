-- error: Did you mean "pipeline.name"?
RESET 'pipeline.nam';
