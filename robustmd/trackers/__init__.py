"""The trackers, one file each: where the numbers of a run go beside its directory.

Every module here is imported, so that a new file is a new tracker.
"""

from importlib import import_module
from pkgutil import iter_modules

for _module in iter_modules(__path__):
    import_module(f"{__name__}.{_module.name}")
