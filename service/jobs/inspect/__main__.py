"""`python -m service.jobs.inspect`: looks into a job and prints one JSON object."""

import sys

from service.jobs.inspect.program import main

if __name__ == "__main__":
    sys.exit(main())
