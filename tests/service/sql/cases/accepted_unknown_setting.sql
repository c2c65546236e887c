-- warning: Setting "table.exec.mine" has no effect: it is none of this service, whose settings are pipeline.name, sluice.trigger-interval, execution.runtime-mode, table.exec.source.idle-timeout, table.exec.emit.allow-lateness, table.local-time-zone.
-- with: s_key out_bigint
SET 'table.exec.mine' = 'x';
INSERT INTO o SELECT k FROM s;
