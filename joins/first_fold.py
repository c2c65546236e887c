"""Stays for one version: a runner that lives through an upgrade starts it by this name."""

from joins.dimension.fold_files import main

if __name__ == "__main__":
    main()
