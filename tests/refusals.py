"""What is refused is said in one line; imported by name."""

from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from robustmd.errors import UserError


@contextmanager
def refused(*words: str) -> Iterator[pytest.ExceptionInfo[UserError]]:
    """The block raises a UserError: one line of a length that can be read, with these words."""
    with pytest.raises(UserError) as error:
        yield error
    text = str(error.value)
    assert "\n" not in text
    assert len(text) < 900
    for word in words:
        assert word in text
