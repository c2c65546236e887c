-- error: CREATE SHARED VIEW is not supported
CREATE SHARED VIEW v AS SELECT user_id FROM stream;
