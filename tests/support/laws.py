"""How many examples a property test tries."""

import os

SHARE = "SHARE_OF_EXAMPLES"
_SHARE_PERCENT = "10"


def examples(count: int) -> int:
    """`SHARE` percent of `count`: a tenth in `make test`, a third in `.ci/run`."""
    return max(1, count * int(os.environ.get(SHARE, _SHARE_PERCENT)) // 100)
