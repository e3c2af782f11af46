"""`robustmd data`: fetch or find a data set, verify it, prepare it, and show what it is."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from robustmd.commands import make_parser
from robustmd.console import make_console
from robustmd.errors import UserError

if TYPE_CHECKING:
    from rich.console import Console

    from robustmd.config.settings import Config
    from robustmd.domains.domain_set import DomainSet

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
    name = given.words[0] if given.words and "=" not in given.words[0] else None
    overrides = given.words[0 if name is None else 1 :]
    for override in overrides:
        if override.startswith("data="):
            raise UserError(
                f"{override}: the data set is named without data=, as robustmd data digits"
            )
    if name is None:
        if given.check or given.show is not None:
            flag = "--check" if given.check else f"--show {given.show}"
            raise UserError(f"{flag}: say of which data set, as robustmd data digits {flag}")
        from robustmd.domains.inspect import list_data_sets  # noqa: PLC0415

        list_data_sets(_config(overrides).paths.folder("data"), _console())
        return 0
    form = None if given.show is None else _form(given.show)
    return _show(_config([f"data={name}", *overrides]), given.show, form, check=given.check)


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


def _form(path: Path) -> str:
    form = FORMS.get(path.suffix.lower())
    if form is None:
        raise UserError(f"--show {path}: must end in {' or '.join(FORMS)}")
    if not path.absolute().parent.is_dir():
        raise UserError(f"--show {path}: there is no folder {path.parent}")
    return form


def _config(overrides: Sequence[str]) -> Config:
    """Composed and checked as train does it."""
    from robustmd.config.composing import composed_config  # noqa: PLC0415
    from robustmd.config.typed import check_taken, typed  # noqa: PLC0415
    from robustmd.config.validation import validate  # noqa: PLC0415 - not needed for --help

    check_taken(overrides, CHANGEABLE, "data")
    config = typed(composed_config(overrides))
    validate(config)
    return config


def _show(config: Config, picture: Path | None, form: str | None, *, check: bool) -> int:
    from robustmd.config.loading import load_domains, with_test_notes  # noqa: PLC0415
    from robustmd.domains.inspect import prepared_folder, print_data_set  # noqa: PLC0415
    from robustmd.domains.store import check_store  # noqa: PLC0415

    console = _console()

    def say(line: str) -> None:
        console.print(line, soft_wrap=True)

    domains = load_domains(config, say)
    seen = [name for name in domains.names if name not in config.data.unseen]
    domains = with_test_notes(domains, seen, say)
    if check and (folder := prepared_folder(domains)) is not None:
        check_store(folder)
    print_data_set(domains, config.data.unseen, console)
    if check:
        say("Checked: all prepared arrays are what they were prepared as")
    if picture is not None and form is not None:
        count = _draw(domains, picture, form)
        some = f" of {count} of {len(domains)} domains" if count < len(domains) else ""
        say(f"examples{some} drawn to {picture}")
    return 0


def _console() -> Console:
    return make_console(width=None if sys.stdout.isatty() else PIPED_WIDTH)


def _draw(domains: DomainSet, path: Path, form: str) -> int:
    """Returns how many domains are in the picture."""
    from robustmd.domains.inspect import draw_examples, drawn_domains  # noqa: PLC0415
    from robustmd.runs.files import write_atomically  # noqa: PLC0415

    try:
        write_atomically(path, lambda stream: draw_examples(domains, stream, form))
    except OSError as error:
        raise UserError(f"--show {path}: cannot be written ({error.strerror or error})") from None
    return len(drawn_domains(domains))
