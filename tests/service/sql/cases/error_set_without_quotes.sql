-- error: Write SET 'key' = 'value'.
SET pipeline.name = x;
