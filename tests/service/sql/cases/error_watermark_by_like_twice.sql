-- error: table "s" has a WATERMARK already
-- fixed: LIKE s => LIKE s (OVERWRITING WATERMARKS)
-- with: d_since s_event_time out_bigint_string … join_name_of_time
CREATE TABLE e (WATERMARK FOR ts AS ts) WITH ('topic' = 'e') LIKE s;
