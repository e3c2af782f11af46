"""`python -m robustmd` is the command `robustmd`."""

import sys

from robustmd.cli import main

sys.exit(main())
