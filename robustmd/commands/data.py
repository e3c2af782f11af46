"""`robustmd data`: fetch or find a data set, verify it, prepare it, and show what it is."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from robustmd.commands import make_parser
from robustmd.console import make_console
from robustmd.errors import UserError

CHANGEABLE = ("data", "paths", "seed")  # what can change what is loaded
PIPED_WIDTH = 120  # letters to a line where no terminal says how many
FORMS = {".png": "png", ".pdf": "pdf"}
EPILOG = """\
Loads exactly what `robustmd train data=NAME key=value …` would. Without NAME: lists the data sets.

examples:
  robustmd data
  robustmd data digits_mini --show digits_mini.png
  robustmd data digits paths.data=DIR data.verify=false
  robustmd data folder data.root=DIR --show examples.pdf
  robustmd data digits --check
"""


def main(arguments: Sequence[str]) -> int:
    """Run `robustmd data`. Returns the exit code. Raises UserError."""
    given = parser().parse_intermixed_args(arguments)

    from robustmd.config.check import check_taken, make_config  # noqa: PLC0415
    from robustmd.config.loading import load_domains, with_test_notes  # noqa: PLC0415
    from robustmd.domains import inspect  # noqa: PLC0415
    from robustmd.domains.store import check_store  # noqa: PLC0415
    from robustmd.runs.files import write_atomically  # noqa: PLC0415

    name = given.words[0] if given.words and "=" not in given.words[0] else None
    overrides = given.words[0 if name is None else 1 :]
    named = [override for override in overrides if override.startswith("data=")]
    if named:
        raise UserError(f"{named[0]}: the data set is named without data=, as robustmd data digits")
    picture: Path | None = given.show
    if picture and picture.suffix.lower() not in FORMS:
        raise UserError(f"--show {picture}: must end in {' or '.join(FORMS)}")
    if picture and not picture.absolute().parent.is_dir():
        raise UserError(f"--show {picture}: there is no folder {picture.parent}")
    if name is None and (picture or given.check):
        flag = "--check" if given.check else f"--show {picture}"
        raise UserError(f"{flag}: say of which data set, as robustmd data digits {flag}")
    overrides = overrides if name is None else [f"data={name}", *overrides]
    check_taken(overrides[0 if name is None else 1 :], CHANGEABLE, "data")
    config = make_config(overrides)
    console = make_console(width=None if sys.stdout.isatty() else PIPED_WIDTH)
    if name is None:
        inspect.list_data_sets(config.paths.folder("data"), console)
        return 0

    def say(line: str) -> None:
        console.print(line, soft_wrap=True)

    domains = load_domains(config, say)
    seen = [domain for domain in domains.names if domain not in config.data.unseen]
    domains = with_test_notes(domains, seen, say)
    inspect.print_data_set(domains, config.data.unseen, console)
    if given.check:
        if folder := inspect.prepared_folder(domains):
            check_store(folder)
        say("Checked: all prepared arrays are what they were prepared as")
    if picture:
        form = FORMS[picture.suffix.lower()]
        try:
            write_atomically(picture, lambda stream: inspect.draw_examples(domains, stream, form))
        except OSError as error:
            reason = error.strerror or error
            raise UserError(f"--show {picture}: cannot be written ({reason})") from None
        say(f"examples drawn to {picture}")
    return 0


def parser() -> argparse.ArgumentParser:
    parser = make_parser("data", EPILOG)
    parser.add_argument(
        "words",
        nargs="*",
        metavar="NAME key=value",
        help="a data set, and settings of data.…, paths.… and seed as for train",
    )
    parser.add_argument("--show", type=Path, metavar="FILE", help="draw examples: .png or .pdf")
    parser.add_argument(
        "--check", action="store_true", help="read all prepared arrays and compare their checksums"
    )
    return parser
