"""`robustmd bench`: arguments and what they do. Light until it runs."""

import argparse
import json
from collections.abc import Sequence
from pathlib import Path

from robustmd.commands import make_parser
from robustmd.config.ranges import DEVICE
from robustmd.console import make_console
from robustmd.errors import UserError
from robustmd.runs.files import write_atomically

EPILOG = """\
Times, in turns in one process: the bare model on one batch; even, opt and ot as `train` runs them;
and a naive loop (a DataLoader and a forward pass for every domain, losses read on the host). Ratios
are medians of paired times with 95 % intervals. About 4 minutes on 2 idle cores: other work on the
machine widens the intervals.

examples:
  robustmd bench
  robustmd bench --out bench.json --threads 2
"""


def parser() -> argparse.ArgumentParser:
    parser = make_parser("bench", EPILOG)
    parser.add_argument("--out", type=Path, metavar="FILE", help="write the numbers as JSON")
    parser.add_argument("--device", default="auto", help="auto, cpu, cuda, cuda:N, mps")
    parser.add_argument("--threads", type=int, metavar="N", help="CPU threads (default: torch's)")
    parser.add_argument("--quick", action="store_true", help="a few rounds: does it run at all?")
    return parser


def main(arguments: Sequence[str]) -> int:
    """Measure, print, and write the JSON file. Returns the exit code. Raises UserError."""
    args = parser().parse_args(arguments)
    if args.threads is not None and args.threads < 1:
        raise UserError(f"--threads {args.threads}: must be a whole number >= 1")
    if not DEVICE.holds(args.device):
        raise UserError(f"--device {args.device}: must be {DEVICE.words}")
    if args.out is not None and not args.out.parent.is_dir():
        raise UserError(f"--out {args.out}: there is no folder {args.out.parent}")
    # torch takes seconds to load: not for --help
    import torch  # noqa: PLC0415

    from robustmd.bench.study import effort_for, run_bench, show  # noqa: PLC0415
    from robustmd.training.records import choose_device  # noqa: PLC0415

    if args.threads is not None:
        torch.set_num_threads(args.threads)
    device = choose_device(args.device)
    console = make_console()
    result = run_bench(device, effort_for(device, quick=args.quick), console.print)
    if args.out is not None:
        text = json.dumps(result, indent=2) + "\n"
        try:
            write_atomically(args.out, lambda stream: stream.write(text.encode()))
        except OSError as error:
            raise UserError(f"--out {args.out}: cannot be written ({error.strerror})") from None
    show(result, console)
    return 0
