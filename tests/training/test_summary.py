"""What a run keeps of its data: licences, duplicates, examples."""

import io
from dataclasses import replace
from pathlib import Path

import numpy as np
from PIL import Image
from tiny import summary, synthetic_domains

from robustmd.domains.domain import CC_BY_4, NON_COMMERCIAL, DomainSet
from robustmd.training.records import example_sheet


def licensed(*licences: str) -> DomainSet:
    plain = synthetic_domains()
    for domain in plain:
        for examples in domain.splits.values():
            examples.images.flags.writeable = True
    a, b = (replace(d, licence=licence) for d, licence in zip(plain, licences, strict=True))
    b.train.images[0] = a.train.images[0]
    a.test.images[1] = a.train.images[0]
    return replace(plain, domains=(a, b))


def test_a_run_records_licences_duplicates_and_examples(train, tmp_path: Path) -> None:
    found = licensed(CC_BY_4, NON_COMMERCIAL)
    outcome = train("method=opt", f"paths.cache={tmp_path / 'cache'}", data=found)
    said = summary(outcome.directory)
    assert said["licences"] == {"a": CC_BY_4, "b": NON_COMMERCIAL}
    assert "the same image in two splits of a domain: 1 of a test are in train" in said["warnings"]
    assert any(line.startswith("the same image in two domains") for line in said["warnings"])
    picture = (outcome.directory / "examples.png").read_bytes()
    assert picture == example_sheet(found)
    log = (outcome.directory / "train.log").read_text()
    assert log.count("warning: the same image in two domains") == 1


def test_no_example_of_what_may_not_be_shown_is_kept(train, tmp_path: Path) -> None:
    found = licensed("", NON_COMMERCIAL)
    outcome = train("method=even", f"paths.cache={tmp_path / 'cache'}", data=found)
    assert outcome.status == "finished"
    assert not (outcome.directory / "examples.png").exists()


def test_the_sheet_of_a_run_stays_small() -> None:
    rng = np.random.default_rng(0)

    def split(count: int) -> tuple[np.ndarray, np.ndarray]:
        images = rng.integers(0, 256, (count, 96, 96, 3), dtype=np.uint8)
        return images, np.arange(count) % 24

    plain = DomainSet.from_tensors({f"d{k}": (*split(48), *split(24)) for k in range(16)})
    domains = tuple(replace(domain, licence=CC_BY_4) for domain in plain)
    sheet = example_sheet(replace(plain, domains=domains))
    assert sheet is not None
    assert len(sheet) < 600_000  # of noise, which no PNG makes smaller
    assert Image.open(io.BytesIO(sheet)).format == "PNG"
