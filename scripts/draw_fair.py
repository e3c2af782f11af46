"""Draws the fair protocol's configurations: conf/fair/ranges.yaml → conf/row/fair/*.yaml.

    python scripts/draw_fair.py                            # after a change of the ranges
    python scripts/draw_fair.py --ranges MINE.yaml --conf DIR --name mine

The second makes a preset of your own, for `robustmd train --config-dir DIR experiment=mine`.
docs/fair.md says how they are drawn.
"""

import argparse
import hashlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import yaml

CONF = Path(__file__).resolve().parent.parent / "conf"
RANGES = CONF / "fair" / "ranges.yaml"
INDIVIDUALS = 2  # domains whose individual models `regret` takes its f* from
KINDS = ("log", "uniform", "choice")
OURS = "fair"
PRESET = """# @package _global_
# robustmd train --config-dir DIR experiment={name}
defaults:
  - /{name}/rows@hydra.sweeper.params
  - _self_

data:
  validation: 0.2
hydra:
  mode: MULTIRUN
  sweeper:
    params: # after row: all seeds of the individual models are there before regret looks for f*
      seed: 0,1,2,3,4
"""


def draws(key: str, of: Mapping[str, Any], count: int, seed: int) -> list[Any]:
    """One value for each of `count` configurations.

    x_i = F⁻¹((π(i) + u)/count) with a permutation π and one u, uniform in [0, 1): equally far apart
    from a random start, in random order, so that few draws cover the range. Two digits are kept.

    Args:
        key: "method.lam"; the stream is its and the range's own.
        of: {"log": [low, high]}, {"uniform": [low, high]} or {"choice": [a, b, …]}.
        count: >= 1.
        seed: >= 0.
    """
    ((kind, ends),) = of.items()
    if kind not in KINDS:
        raise ValueError(f"{key}: {kind}: a range is one of {', '.join(KINDS)}")
    name = hashlib.sha256(f"{key} {kind} {ends}".encode()).digest()[:8]
    rng = np.random.Generator(np.random.Philox(np.random.SeedSequence([seed, *name])))
    shares = (rng.permutation(count) + rng.random()) / count
    if kind == "choice":
        return [ends[int(share * len(ends))] for share in shares]
    low, high = map(float, ends)
    if kind == "uniform":
        return [float(f"{low + share * (high - low):.2g}") for share in shares]
    return [float(f"{low * (high / low) ** share:.2g}") for share in shares]


def configurations(ranges: Mapping[str, Any]) -> dict[str, list[dict[str, Any]]]:
    """{method: [{key: value}, …]}, as many for every method; individual models first."""
    count, seed, common = ranges["configurations"], ranges["seed"], ranges["every_method"]
    individuals = {f"individual_{k}": {"method.domain": k} for k in range(INDIVIDUALS)}
    found: dict[str, list[dict[str, Any]]] = {}
    for method, own in (individuals | ranges["methods"]).items():
        fixed = own if method in individuals else {}
        drawn = common if method in individuals else common | own
        by_key = {key: draws(key, of, count, seed) for key, of in drawn.items()}
        found[method] = [
            {key: values[i] for key, values in by_key.items()} | fixed for i in range(count)
        ]
    return found


def row_text(method: str, place: int, values: Mapping[str, Any]) -> str:
    """One file of conf/row/<name>/."""
    groups: dict[str, dict[str, Any]] = {}
    for key, value in values.items():
        group, _, name = key.partition(".")
        groups.setdefault(group, {})[name] = value
    head = [
        "# @package _global_",
        f"# Configuration {place} of {method} in the fair protocol, by scripts/draw_fair.py.",
        "defaults:",
        f"  - override /method: {method.partition('_')[0] if 'individual' in method else method}",
        "",
    ]
    return "\n".join(head) + yaml.safe_dump(groups, sort_keys=False)


def files(ranges: Mapping[str, Any], name: str = OURS) -> dict[str, str]:
    """{path below conf/: content}: the rows, their list, and a preset where the name is not ours,
    whose presets are written by hand."""
    lines, texts = [], {}
    for method, found in configurations(ranges).items():
        rows = {f"{name}/{method}_{i}": row_text(method, i, one) for i, one in enumerate(found)}
        texts |= {f"row/{row}.yaml": text for row, text in rows.items()}
        lines.append(",".join(rows))
    listed = ",\\\n  ".join(lines)
    texts[f"{name}/rows.yaml"] = (
        f'# The rows of the fair protocol\'s presets, by scripts/draw_fair.py.\nrow: "{listed}"\n'
    )
    if name != OURS:
        texts[f"experiment/{name}.yaml"] = PRESET.format(name=name)
    return texts


def main() -> None:
    """Writes the files; rows of methods that are no longer in the ranges go."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--ranges", type=Path, default=RANGES)
    parser.add_argument("--conf", type=Path, default=CONF)
    parser.add_argument("--name", default=OURS)
    args = parser.parse_args()
    if not args.name.isidentifier():
        parser.error(f"--name {args.name}: must be letters, digits and underscores")
    texts = files(yaml.safe_load(args.ranges.read_text("utf-8")), args.name)
    for old in (args.conf / "row" / args.name).glob("*.yaml"):
        old.unlink()
    for name, text in texts.items():
        path = args.conf / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, "utf-8")


if __name__ == "__main__":
    main()
