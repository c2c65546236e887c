"""`python -m joins.adapters.datagen`: the generator's process."""

from joins.adapters.datagen.process import main

if __name__ == "__main__":
    main()
