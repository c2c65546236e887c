"""How many examples a property test tries: its share of them is that of the lane (Makefile)."""

import os

SHARE = "SHARE_OF_EXAMPLES"
_SHARE_PERCENT = "5"


def examples(count: int) -> int:
    return max(1, count * int(os.environ.get(SHARE, _SHARE_PERCENT)) // 100)
