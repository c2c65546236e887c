-- error: Did you mean "s"?
-- with: s_plain
DROP TABLE ss;
