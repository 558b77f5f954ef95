"""``python -m doctor``."""

import sys

from doctor.commands import main

if __name__ == "__main__":
    sys.exit(main())
