"""Objects of a process that forks, made immortal: a fork that uses them then copies no pages to count references."""

import ctypes
import gc
import sys
import sysconfig
from types import CodeType
from typing import Any

import numpy as np

IMMORTAL = 0xFFFF_FFFF
"""The lower half of the count of an immortal object in CPython 3.12 and 3.13 (PEP 683), which is never changed."""
ITEMS = 24  # the offset, in a list, of the pointer to its items


def freeze() -> None:
    """Take all objects of this process out of garbage collection and of reference counting: they are never freed then.

    A fork copies each page in which it writes, and would write in two of five such pages only to count references.
    """
    gc.collect()
    if (3, 12) <= sys.version_info < (3, 14) and not sysconfig.get_config_var("Py_GIL_DISABLED"):
        objects: list[Any] = gc.get_objects()
        while objects := make_immortal(objects):
            inner = gc.get_referents(*objects)
            for code in objects:
                if type(code) is CodeType:  # which the garbage collector does not know
                    inner += (code.co_consts, code.co_names, code.co_filename, code.co_name, code.co_qualname)
            objects = inner
    gc.freeze()


def make_immortal(objects: list[Any]) -> list[Any]:
    """Make objects immortal, and return those that were not."""
    if not objects:
        return []
    items = ctypes.c_void_p.from_address(id(objects) + ITEMS)
    addresses = np.ctypeslib.as_array(ctypes.cast(items, ctypes.POINTER(ctypes.c_size_t)), (len(objects),))
    first, last = int(addresses.min()), int(addresses.max())
    whole = ctypes.cast(first, ctypes.POINTER(ctypes.c_uint32))
    counts, places = np.ctypeslib.as_array(whole, ((last - first) // 4 + 1,)), (addresses - first) // 4
    mortal = np.flatnonzero(counts[places] != IMMORTAL)
    mortal = mortal[np.unique(places[mortal], return_index=True)[1]]
    counts[places[mortal]] = IMMORTAL
    return [objects[index] for index in mortal]
