"""Checks of two keys that several methods share."""

from __future__ import annotations

from typing import Any

from robustmd.errors import UserError


def refuse_unsized(method: Any) -> None:
    """A constant step needs its size `eta`, and no other step has one. Raises UserError."""
    if method.step != "constant":
        refuse_unread(method, "only method.step=constant has it", "eta")
    elif method.eta is None:
        raise UserError("method.eta=null: method.step=constant needs its size, a number > 0")


def refuse_unread(method: Any, why: str, *keys: str) -> None:
    """Keys that nothing would read must be left at their defaults. Raises UserError."""
    for key in keys:
        value = getattr(method, key)
        if value != type(method).model_fields[key].default:
            raise UserError(f"method.{key}={value}: {why}; leave it out")
