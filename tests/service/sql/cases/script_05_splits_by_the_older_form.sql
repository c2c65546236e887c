-- plan: INSERT 1 | SELECT payments.payment_id AS payment_id, payments.amount AS amount | INTO cards delta(cards) | INSERT 2 | SELECT payments.payment_id AS payment_id | INTO seen print()
-- with: payments cards
CREATE TABLE seen (payment_id STRING) WITH ('connector' = 'print');
SET execution.checkpointing.interval = 30s;
BEGIN STATEMENT SET;
INSERT INTO cards SELECT payment_id, amount FROM payments;
INSERT INTO seen SELECT payment_id FROM payments;
END;
