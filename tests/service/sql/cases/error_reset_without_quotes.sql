-- error: a key in single quotes
RESET pipeline.name;
