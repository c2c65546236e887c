"""Stays for one version: sessions and executors of the version before ask for this name."""

import sys

from joins.worker.daemon import main

if __name__ == "__main__":
    main(sys.argv[1:])
