"""What decides how a Python object computes: the parts that digest.py hashes, for each kind."""

from __future__ import annotations

import copyreg
import dis
import functools
import importlib
import sys
import sysconfig
import types
import weakref
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.modules import module as torch_module
from torch.utils.hooks import RemovableHandle

STDLIB = {Path(sysconfig.get_path(name)) for name in ("stdlib", "platstdlib")}
MADE_IN_PYTHON = 1 << 9  # a flag of classes
LOADS = ("LOAD_GLOBAL", "LOAD_NAME", "LOAD_FROM_DICT_OR_GLOBALS")
LOOKUPS = {"globals", "eval", "exec", "__import__"}  # of names that stand nowhere in the code
CODE = (
    *("co_code", "co_consts", "co_names", "co_varnames", "co_freevars", "co_cellvars"),
    *("co_argcount", "co_posonlyargcount", "co_kwonlyargcount", "co_flags", "co_exceptiontable"),
)
# Of a class: where it stands, its texts, and numbers that this process gave it.
UNTOLD = {
    *("__module__", "__qualname__", "__doc__", "__dict__", "__weakref__", "__firstlineno__"),
    *("__annotations__", "__annotate__", "__annotate_func__", "__annotations_cache__"),
    *("__orig_bases__", "__parameters__", "__type_params__", "__static_attributes__"),
    *("__slotnames__", "_abc_impl", "_autograd_function_id", "_backward_cls"),
}
PICKLING = ("__reduce_ex__", "__reduce__", "__getstate__", "__getnewargs__", "__getnewargs_ex__")
HOOKS = {key for key in vars(nn.Module()) if "_hooks" in key}  # {a number that counts up: hook}


class Unknown(Exception):
    """A part of an object that cannot be compared with another process's; the text says which."""


class Address(int):
    """Of memory, which two tensors may share."""


def parts_of(value: Any) -> tuple[Any, ...]:
    """What decides how a value computes, beside its type."""
    for kind, parts in PARTS.items():
        if isinstance(value, kind):
            return parts(value)
    reduce = copyreg.dispatch_table.get(type(value))
    reduced = reduce(value) if reduce else value.__reduce_ex__(4)
    if isinstance(reduced, str):  # the name of something that was made in C
        if any(names.get(reduced) is value for names in _libraries()):
            return (reduced,)
        raise TypeError
    make, arguments, *state = reduced
    # A class of the user's may leave out of its pickle what it computes with.
    own = vars(value) if _pickles_itself(type(value)) and hasattr(value, "__dict__") else None
    return make, arguments, *(tuple(x) if isinstance(x, Iterator) else x for x in state), own


def _class_parts(value: type) -> tuple[Any, ...]:
    told = {key: part for key, part in vars(value).items() if key not in UNTOLD}
    return value.__name__, value.__bases__, told


def _function_parts(function: types.FunctionType) -> tuple[Any, ...]:
    """Its code, defaults, closure and attributes; the globals and modules that its code names."""
    space, code = function.__globals__, function.__code__
    parts = (
        *(code, function.__defaults__, function.__kwdefaults__, function.__closure__),
        vars(function),
    )
    if _is_library(space.get("__name__")):  # a decorator of torch's, say: its globals are torch's
        return parts
    steps = [step for step in _steps(code) if step.opname != "EXTENDED_ARG"]
    loaded = {step.argval for step in steps if step.opname in LOADS}
    names = {step.argval for step in steps if isinstance(step.argval, str)}
    if lookup := (LOOKUPS & (loaded - space.keys())) | ({"import_module"} & names):
        raise Unknown(f"{min(lookup)}() in {function.__qualname__}")
    used: dict[str, Any] = {key: space[key] for key in sorted(loaded & space.keys())}
    for place, step in enumerate(steps):
        if step.opname == "IMPORT_NAME":
            level, froms = (steps[place - back].argval for back in (2, 1))
            name = "." * level + step.argval
            used[f"import {name}"] = _imported(name, froms or (), space.get("__package__"))
    return *parts, {
        key: _module_parts(part, names) if isinstance(part, types.ModuleType) else part
        for key, part in used.items()
    }


def _steps(code: types.CodeType) -> Iterator[dis.Instruction]:
    """Of a function and of those that are made in it."""
    yield from dis.get_instructions(code)
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            yield from _steps(constant)


def _imported(name: str, froms: Sequence[str], package: str | None) -> Any:
    """The module that a function imports when it is called; None where there is none."""
    module = None
    with suppress(Exception):  # whatever a module raises: the function may expect it
        module = importlib.import_module(name, package)
        for one in froms:
            if not hasattr(module, one):
                importlib.import_module(f"{module.__name__}.{one}")
    return module


def _module_parts(
    module: types.ModuleType, names: set[str] | None = None, seen: set[int] | None = None
) -> tuple[Any, ...]:
    """Its name, its source, and the values of `names` in it (None: of all); of a library only those
    that the user has put there."""
    names = {key for key in vars(module) if key[:2] != "__"} if names is None else names
    is_library, seen = _is_library(module.__name__), seen or set()
    seen.add(id(module))
    parts: dict[str, Any] = {}
    for key in sorted(names & vars(module).keys()):
        part = vars(module)[key]
        if not isinstance(part, types.ModuleType):
            parts |= {key: part} if not is_library or _is_users(part) else {}
        elif id(part) not in seen:
            parts[key] = _module_parts(part, names, seen)
    file = None if is_library else getattr(module, "__file__", None)
    return module.__name__, Path(file).read_bytes() if file else None, parts


def _tensor_parts(tensor: Tensor) -> tuple[Any, ...]:
    """Its values, and how they lie in memory."""
    parts = str(tensor.dtype), tensor.requires_grad, vars(tensor)
    if nn.parameter.is_lazy(tensor):
        return parts
    where = tuple(tensor.shape), tensor.stride(), tensor.storage_offset(), tensor.is_meta
    if tensor.is_meta:
        return *parts, *where
    values = tensor.detach().resolve_conj().resolve_neg().cpu().contiguous().view(-1)
    address = Address(tensor.untyped_storage().data_ptr())
    return *parts, *where, address, _bytes(values.view(torch.uint8).numpy())


def _array_parts(array: np.ndarray) -> tuple[Any, ...]:
    values = array.ravel().tolist() if array.dtype.hasobject else _bytes(array)
    of_subclass = {} if isinstance(array, np.memmap) else getattr(array, "__dict__", {})
    return str(array.dtype), array.shape, values, of_subclass


def _bytes(array: np.ndarray) -> memoryview:
    return memoryview(np.ascontiguousarray(array).reshape(-1).view(np.uint8))  # type: ignore[arg-type]


def _layers_parts(module: nn.Module) -> tuple[Any, ...]:
    """Its attributes, its hooks by their order in place of a number that counts up."""
    if isinstance(module, torch.jit.ScriptModule):
        raise TypeError
    slots = copyreg._slotnames(type(module))  # type: ignore[attr-defined]
    attributes = vars(module) | {name: getattr(module, name, None) for name in slots}
    numbers = sorted({number for key in HOOKS & attributes.keys() for number in attributes[key]})
    return (
        {
            key: {numbers.index(n): hook for n, hook in value.items()} if key in HOOKS else value
            for key, value in attributes.items()
        },
    )


def hooks_of_all_modules() -> list[Mapping[int, Any]]:
    names = (name for name in vars(torch_module) if name.startswith("_global_"))
    return [of for name in names if isinstance(of := getattr(torch_module, name), dict)]


def _cell_parts(cell: types.CellType) -> tuple[Any, ...]:
    try:
        return (cell.cell_contents,)
    except ValueError:  # empty
        return ()


PARTS: Mapping[type, Callable[[Any], tuple[Any, ...]]] = {
    type: _class_parts,
    Tensor: _tensor_parts,
    np.ndarray: _array_parts,
    nn.Module: _layers_parts,
    types.FunctionType: _function_parts,
    types.CodeType: lambda code: tuple(getattr(code, name, b"") for name in CODE),
    types.CellType: _cell_parts,
    types.ModuleType: _module_parts,
    types.MethodType: lambda method: (method.__func__, method.__self__),
    types.MappingProxyType: lambda mapping: (dict(mapping),),
    types.GetSetDescriptorType: lambda value: (value.__name__,),
    types.MemberDescriptorType: lambda value: (value.__name__,),
    property: lambda value: (value.fget, value.fset, value.fdel),
    classmethod: lambda method: (method.__func__,),
    staticmethod: lambda method: (method.__func__,),
    functools.cached_property: lambda value: (value.func, value.attrname),
    functools._lru_cache_wrapper: lambda cache: (cache.__wrapped__, cache.cache_parameters()),
    RemovableHandle: lambda handle: (),  # a number that counts up
    weakref.ReferenceType: lambda reference: (reference(),),
}


def library_name(value: Any) -> str:
    """Under which name an installed library has this very class or function; "" if none has."""
    if not isinstance(value, type | types.FunctionType) or _is_users(value):
        return ""
    module, found = value.__module__, sys.modules.get(value.__module__)
    for part in value.__qualname__.split("."):
        found = getattr(found, part, None)
    made_in_c = isinstance(value, type) and not value.__flags__ & MADE_IN_PYTHON
    return f"{module}.{value.__qualname__}" if found is value or made_in_c else ""


def replaced_in(value: Any) -> dict[str, Any]:
    """The user's own functions that stand among the methods of a library's class."""
    kinds = reversed(value.__mro__) if isinstance(value, type) else ()
    methods = {key: part for kind in kinds for key, part in vars(kind).items()}
    return {key: part for key, part in methods.items() if _is_users(part)}


def _is_users(value: Any) -> bool:
    """Whether it is a function or class that no installed library made."""
    if isinstance(value, types.FunctionType):
        return not _is_library(value.__globals__.get("__name__"))
    return isinstance(value, type) and not _is_library(value.__module__)


def _pickles_itself(kind: type) -> bool:
    own = [vars(one) for one in kind.__mro__ if _is_users(one)]
    return any(name in names for names in own for name in PICKLING)


def _libraries() -> list[dict[str, Any]]:
    """The names in every installed module."""
    modules = {name: m for name, m in sys.modules.items() if isinstance(m, types.ModuleType)}
    return [vars(module) for name, module in modules.items() if _is_library(name)]


def _is_library(name: Any) -> bool:
    """Whether a module is installed or Python's own; the user's are neither, wherever they lie."""
    top = str(name).partition(".")[0]
    if top in ("__main__", __package__):
        return top == __package__
    module = sys.modules.get(name) or sys.modules.get(top)
    made_in_c = getattr(getattr(module, "__spec__", None), "origin", None) in ("built-in", "frozen")
    return made_in_c or _is_installed(getattr(module, "__file__", None) or "")


@functools.cache
def _is_installed(file: str) -> bool:
    path = Path(file)
    packages = {"site-packages", "dist-packages"} & {*path.parts}
    return bool(packages or STDLIB & {*path.parents})
