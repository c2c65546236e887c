"""The runner with an index that never merges its segments: `python -m` of this module.

The worst case of a lookup; merging keeps the number of live segments to a handful.
"""

from joins.kernels.index import index
from service.jobs import runner


def main() -> None:
    """Switch merging off, then be the runner."""
    if not hasattr(index, "_MERGE_FACTOR"):
        raise RuntimeError("the index has no _MERGE_FACTOR any more: adapt this program to it")
    index._MERGE_FACTOR = 0
    runner.main()


if __name__ == "__main__":
    main()
