-- plan: INSERT 1 | WHERE (payments.method = 'card') | SELECT payments.payment_id AS payment_id, payments.amount AS amount | INTO cards delta(cards) | INSERT 2 | WHERE ((payments.method <> 'card') OR (payments.method IS NULL)) | SELECT payments.payment_id AS payment_id, payments.method AS method | INTO others delta(others)
-- with: payments cards
CREATE TABLE others (
    payment_id STRING, method STRING
) WITH ('connector' = 'delta', 'path' = 'others');
EXECUTE STATEMENT SET
BEGIN
  INSERT INTO cards SELECT payment_id, amount FROM payments WHERE method = 'card';
  INSERT INTO others SELECT payment_id, method FROM payments WHERE method <> 'card' OR method IS NULL;
END;
