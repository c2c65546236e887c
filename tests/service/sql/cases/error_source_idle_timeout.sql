-- error: setting "table.exec.source.idle-timeout" is "-1 s"
-- with: d_since s_event_time out_bigint_string … join_name_of_time
SET 'table.exec.source.idle-timeout' = '-1 s';
