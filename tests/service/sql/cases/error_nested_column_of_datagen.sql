-- error: datagen cannot make column "a"
CREATE TABLE t (a ARRAY<INT>) WITH ('connector' = 'datagen');
