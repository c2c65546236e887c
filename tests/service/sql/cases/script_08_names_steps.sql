-- plan: WHERE ((payments.amount > 5000:DECIMAL(18, 2)) AND (COALESCE(payments.method, 'unknown') <> 'invoice')) | SELECT payments.account AS account, payments.amount AS amount, COALESCE(payments.method, 'unknown') AS reason | INTO risky delta(risky)
-- with: payments
CREATE TABLE risky (
    account STRING, amount DECIMAL(18, 2), reason STRING
) WITH ('connector' = 'delta', 'path' = 'risky');
INSERT INTO risky
WITH large AS (
  SELECT account, amount, method FROM payments WHERE amount > 5000
), labelled AS (
  SELECT account, amount, COALESCE(method, 'unknown') AS reason FROM large
)
SELECT account, amount, reason FROM labelled WHERE reason <> 'invoice';
