"""Stays for one version: a runner that lives through an upgrade starts it by this name."""

import sys

from joins.adapters.delta.feed import main

if __name__ == "__main__":
    sys.exit(main())
