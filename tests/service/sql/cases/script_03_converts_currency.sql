-- plan: SELECT payments.payment_id AS payment_id, CAST((0.908:DECIMAL(3, 3) * payments.amount):DECIMAL(22, 5) AS DECIMAL(23, 3)) AS euros, CASE WHEN (payments.amount > 1000:DECIMAL(18, 2)) THEN 'large' WHEN (payments.amount > 100:DECIMAL(18, 2)) THEN 'middle' ELSE 'small' END AS kind | INTO euros delta(euros)
-- with: payments
CREATE TABLE euros (
    payment_id STRING, euros DECIMAL(23, 3), kind STRING
) WITH ('connector' = 'delta', 'path' = 'euros');
INSERT INTO euros
SELECT payment_id, 0.908 * amount AS euros,
  CASE WHEN amount > 1000 THEN 'large' WHEN amount > 100 THEN 'middle' ELSE 'small' END
FROM payments;
