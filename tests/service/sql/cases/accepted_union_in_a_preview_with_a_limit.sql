-- warning: This is a preview: it reads 10,000 records of each partition at the most, prints 3 rows at the most of each query of UNION ALL to the job's log, and ends.
-- with: s_plain
SELECT k FROM s WHERE k > 1 UNION ALL SELECT k FROM s WHERE k < 5 LIMIT 3;
