"""The command line: one module a group of commands.

Names, values and reasons come from streams, databases and scripts, so each passes `one_line` or
`clean`; only `dlq show --raw` prints bytes unchanged, and never to a terminal.
"""
