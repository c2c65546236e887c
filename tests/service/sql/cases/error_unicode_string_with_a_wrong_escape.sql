-- error: a text U&'…' has an escape that is no character
-- fixed: \20 => \0020
-- with: orders out_id_name
INSERT INTO o SELECT id, U&'\20' FROM orders;
