"""`robustmd export RUN_DIR`: a finished run's model as a file for other programs."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path

from robustmd.commands import add_run, make_parser

EPILOG = """\
The file takes images, uint8 [n, H, W, 3] for any n, and gives logits, float32 [n, C]; the scaling
of pixels is inside. It is compared with the model on random images before it is kept.
docs/python.md says more.

examples:
  robustmd export outputs/digits_mini/opt/3f2a91c0/seed=0 --onnx
  robustmd export outputs/digits_mini/opt/3f2a91c0/seed=0 --torch-export --out digits.pt2
"""


def parser() -> argparse.ArgumentParser:
    parser = make_parser("export", EPILOG)
    add_run(parser)
    kinds = parser.add_mutually_exclusive_group(required=True)
    for kind, file in (("onnx", "model.onnx"), ("torch-export", "model.pt2")):
        kinds.add_argument(
            f"--{kind}", dest="kind", action="store_const", const=kind, help=f"write {file}"
        )
    parser.add_argument("--out", type=Path, metavar="FILE", help="write that file instead")
    return parser


def main(arguments: Sequence[str]) -> int:
    """Write the file and say where. Raises UserError."""
    given = parser().parse_args(arguments)
    from robustmd.trained_run import load_run  # noqa: PLC0415 - torch takes seconds: not for --help

    written = load_run(given.run).export(given.kind, given.out)
    print(f"written: {written}; it gives the model's logits")  # noqa: T201
    return 0
