"""Writes the tables of keys in docs/ from where the keys are declared.

A table stands below `<!-- keys: method=opt -->`, with an option or a section of the config. Run
`python scripts/key_tables.py` after a key was added or its meaning changed; a test runs it with
`--check`, which writes nothing and names the pages that it would change.
"""

import re
import sys
from pathlib import Path

from robustmd.config.keys import keys_of
from robustmd.config.settings import OPTIONS, SECTIONS
from robustmd.config.values import hydra_value

DOCS = Path(__file__).parent.parent / "docs"
TABLE = re.compile(r"(<!-- keys: ([\w=]+) -->\n\n)((?:\|.*\n)*)")


def table(match: re.Match[str]) -> str:
    group, _, option = match[2].partition("=")
    schema = OPTIONS[group][option] if option else SECTIONS[group]
    rows = [("key", "default", "allowed", "meaning"), ("---",) * 4]
    for key in keys_of(group, schema, option):
        rows.append((f"`{key.name}`", f"`{hydra_value(key.default)}`", key.allowed, key.meaning))
    return match[1] + "".join(f"| {' | '.join(row)} |\n" for row in rows)


def main(check: bool) -> int:
    changed = []
    for page in sorted(DOCS.rglob("*.md")):
        text = page.read_text("utf-8")
        written = TABLE.sub(table, text)
        if written != text:
            changed.append(page.name)
            if not check:
                page.write_text(written, "utf-8")
    print(*changed or ["every table is as the keys are"])
    return int(check and bool(changed))


if __name__ == "__main__":
    sys.exit(main("--check" in sys.argv))
