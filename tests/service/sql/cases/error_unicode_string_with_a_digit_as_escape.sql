-- error: UESCAPE is no single character that may be one
-- fixed: UESCAPE 'a' => UESCAPE '!'
-- with: orders out_id_name
INSERT INTO o SELECT id, U&'x' UESCAPE 'a' FROM orders;
