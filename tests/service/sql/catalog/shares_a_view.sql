-- error: CREATE SHARED VIEW is not supported
-- fixed: SHARED VIEW => VIEW
CREATE SHARED VIEW v AS SELECT user_id FROM stream;
