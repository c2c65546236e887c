-- plan: INSERT 1 | WHERE (payments.amount >= 1000:DECIMAL(18, 2)) | SELECT payments.payment_id AS payment_id, 'large' AS note | INTO notes delta(notes) | INSERT 2 | WHERE (payments.amount < 1000:DECIMAL(18, 2)) | SELECT payments.payment_id AS payment_id, payments.method AS note | INTO notes delta(notes)
-- with: payments
CREATE TABLE notes (
    payment_id STRING, note STRING
) WITH ('connector' = 'delta', 'path' = 'notes');
INSERT INTO notes
SELECT payment_id, 'large' AS note FROM payments WHERE amount >= 1000
UNION ALL
SELECT payment_id, method FROM payments WHERE amount < 1000;
