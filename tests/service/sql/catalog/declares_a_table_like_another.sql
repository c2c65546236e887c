-- declares: shared people (id, name, age) key (id)
CREATE SHARED TABLE people WITH ('table-name' = 'people') LIKE users;
