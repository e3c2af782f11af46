"""The table of the 24 shared breeds, against what others say of them."""

import re
from pathlib import Path

import pytest
from torchvision.models import ResNet18_Weights

from robustmd.domains.breeds import BREEDS, chosen_breeds
from robustmd.errors import UserError


def test_it_names_24_breeds_once_each() -> None:
    assert len(BREEDS) == 24
    for column in ("name", "synset", "words", "ilsvrc_id"):
        assert len({getattr(breed, column) for breed in BREEDS}) == 24
    assert [b.name for b in BREEDS] == sorted(b.name for b in BREEDS)
    assert all(re.fullmatch("n0[0-9]{7}", b.synset) and 1 <= b.ilsvrc_id <= 1000 for b in BREEDS)


def test_synsets_and_words_are_in_the_order_of_torchvisions_1000_classes() -> None:
    """Its classes are ordered by synset: a wrong synset would not stand where its name does."""
    categories = ResNet18_Weights.IMAGENET1K_V1.meta["categories"]
    by_synset = [categories.index(b.words) for b in sorted(BREEDS, key=lambda b: b.synset)]
    assert by_synset == sorted(by_synset)


def test_real_folders_and_lists_have_them(real_data: Path) -> None:
    folders = {path.name for path in (real_data / "imagenet" / "train").iterdir()}
    lines = (real_data / "oxford-iiit-pet" / "annotations" / "list.txt").read_text().splitlines()
    names = {line.split()[0].rpartition("_")[0].lower() for line in lines}
    assert {b.synset for b in BREEDS} == folders
    assert {b.name for b in BREEDS} == names


def test_some_are_chosen_in_the_tables_order() -> None:
    assert [b.name for b in chosen_breeds(["pug", "beagle", "pug"])] == ["beagle", "pug"]
    assert chosen_breeds([]) == BREEDS


@pytest.mark.parametrize("names", [["pug", "poodle"], ["pug"], ["pug", "pug"]])
def test_others_are_refused_with_the_list(names, one_line) -> None:
    with pytest.raises(UserError) as error:
        chosen_breeds(names)
    one_line(error, "data.classes=[pug", "basset_hound, beagle", "yorkshire_terrier")
