"""The published files of MNIST, SVHN and Oxford-IIIT Pet: what their bytes are, where they are."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Origin:
    """Where a file is fetched from.

    name: of the fetched file; urls: mirrors, tried in order; size, md5: of the fetched bytes
    """

    name: str
    urls: tuple[str, ...]
    size: int
    md5: str


MNIST_SIZES = {  # of the compressed files
    "train-images-idx3-ubyte.gz": 9_912_422,
    "train-labels-idx1-ubyte.gz": 28_881,
    "t10k-images-idx3-ubyte.gz": 1_648_877,
    "t10k-labels-idx1-ubyte.gz": 4_542,
}
SVHN_SIZES = {
    "train_32x32.mat": 182_040_794,
    "test_32x32.mat": 64_275_384,
    "extra_32x32.mat": 1_329_278_602,
}
# MNIST's are those of the decompressed files: the same content is about in several compressions.
CONTENT_MD5 = {
    "train-images-idx3-ubyte": "6bbc9ace898e44ae57da46a324031adb",
    "train-labels-idx1-ubyte": "a25bea736e30d166cdddb491f175f624",
    "t10k-images-idx3-ubyte": "2646ac647ad5339dbf082846283269ea",
    "t10k-labels-idx1-ubyte": "27ae3e4e09519cfbb04c329615203637",
    "train_32x32.mat": "e26dedcc434d2e4c54c9b2d4a06d8373",
    "test_32x32.mat": "eb5a983be6a315427106f1b164d9cef3",
    "extra_32x32.mat": "a93ce644f1a588dc4d68dda5feec44a7",
}

_PETS = "https://www.robots.ox.ac.uk/~vgg/data/pets/data"
PETS_IMAGES = Origin(
    "images.tar.gz",
    (f"{_PETS}/images.tar.gz",),
    791_918_971,
    "5c4f3ee8e5d25df40f4fd59a7f44e54c",
)
PETS_ANNOTATIONS = Origin(
    "annotations.tar.gz",
    (f"{_PETS}/annotations.tar.gz",),
    19_173_078,
    "95a8c909bbe2e81eed6a22bccdf3f68f",
)


def origin(name: str) -> Origin:
    """Where the file `name` of `CONTENT_MD5` comes from, by torchvision's own lists.

    torchvision is imported here and not above: it takes seconds, and only fetching needs it.
    """
    from torchvision.datasets import MNIST, SVHN  # noqa: PLC0415

    for url, file_name, md5 in SVHN.split_list.values():
        if file_name == name:
            return Origin(name, (url,), SVHN_SIZES[name], md5)
    compressed = f"{name}.gz"
    md5 = dict(MNIST.resources)[compressed]
    urls = tuple(mirror + compressed for mirror in MNIST.mirrors)
    return Origin(compressed, urls, MNIST_SIZES[compressed], md5)
