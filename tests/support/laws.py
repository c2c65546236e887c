"""How many examples a property test tries."""

import os

SHARE = "SHARE_OF_EXAMPLES"
_SHARE_PERCENT = "10"


def examples(count: int) -> int:
    return max(1, count * int(os.environ.get(SHARE, _SHARE_PERCENT)) // 100)
