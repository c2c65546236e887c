-- error: RESET statements are not supported
RESET 'pipeline.name';
