"""Stays for one version: sessions and executors of the version before ask for this name."""

from joins.worker.daemon import main

if __name__ == "__main__":
    main()
