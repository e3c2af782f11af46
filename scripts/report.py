"""The same as `robustmd report`: python scripts/report.py outputs --out report"""

import sys

from robustmd.cli import main

if __name__ == "__main__":
    sys.exit(main(["report", *sys.argv[1:]]))
