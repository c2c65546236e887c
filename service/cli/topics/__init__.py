"""Commands about topics: made, written to, looked at, and a table proposed for one."""
