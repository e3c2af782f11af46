"""The 24 breeds that Oxford-IIIT Pet and ILSVRC2012 share, and what each of them calls them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from robustmd.errors import UserError


@dataclass(frozen=True)
class Breed:
    """name: Oxford-IIIT Pet's, in lower case, which is the class's name here
    synset, words: ILSVRC2012's WordNet id, which names the class's folder, and its name
    ilsvrc_id: 1…1000, the class's number in the devkit's ground truth of the validation images
    """

    name: str
    synset: str
    words: str
    ilsvrc_id: int


BREEDS = (  # in the order of the labels
    Breed("basset_hound", "n02088238", "basset", 161),
    Breed("beagle", "n02088364", "beagle", 132),
    Breed("boxer", "n02108089", "boxer", 130),
    Breed("chihuahua", "n02085620", "Chihuahua", 173),
    Breed("egyptian_mau", "n02124075", "Egyptian cat", 8),
    Breed("english_cocker_spaniel", "n02102318", "cocker spaniel", 191),
    Breed("english_setter", "n02100735", "English setter", 2),
    Breed("german_shorthaired", "n02100236", "German short-haired pointer", 134),
    Breed("great_pyrenees", "n02111500", "Great Pyrenees", 172),
    Breed("japanese_chin", "n02085782", "Japanese spaniel", 99),
    Breed("keeshond", "n02112350", "keeshond", 148),
    Breed("leonberger", "n02111129", "Leonberg", 133),
    Breed("miniature_pinscher", "n02107312", "miniature pinscher", 187),
    Breed("newfoundland", "n02111277", "Newfoundland", 60),
    Breed("persian", "n02123394", "Persian cat", 10),
    Breed("pomeranian", "n02112018", "Pomeranian", 118),
    Breed("pug", "n02110958", "pug", 143),
    Breed("saint_bernard", "n02109525", "Saint Bernard", 177),
    Breed("samoyed", "n02111889", "Samoyed", 179),
    Breed("scottish_terrier", "n02097298", "Scotch terrier", 109),
    Breed("siamese", "n02123597", "Siamese cat", 95),
    Breed("staffordshire_bull_terrier", "n02093256", "Staffordshire bullterrier", 45),
    Breed("wheaten_terrier", "n02098105", "soft-coated wheaten terrier", 26),
    Breed("yorkshire_terrier", "n02094433", "Yorkshire terrier", 59),
)


def chosen_breeds(names: Sequence[str]) -> tuple[Breed, ...]:
    """The breeds of these names in the table's order; all of them for no name.

    Raises UserError for a name that is none, and for fewer than two.
    """
    if not names:
        return BREEDS
    known = [breed.name for breed in BREEDS]
    written = f"data.classes=[{','.join(names)}]"
    unknown = [name for name in names if name not in known]
    if unknown:
        raise UserError(f"{written}: no class {unknown[0]!r}; allowed are {', '.join(known)}")
    chosen = tuple(breed for breed in BREEDS if breed.name in names)
    if len(chosen) < 2:
        raise UserError(f"{written}: one class; at least two are needed, of {', '.join(known)}")
    return chosen
