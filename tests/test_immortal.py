"""Frozen objects are counted and collected no more; what is made after them is."""

import subprocess
import sys
from pathlib import Path

import pytest

PROGRAM = """
import gc, sys, weakref
import immortal

class Node:
    def method(self):
        return "a constant of code"

node, text = Node(), "".join(["a ", "text"])
mine = [node, text, (text, [text]), Node, Node.method, Node.method.__code__, Node.method.__code__.co_consts[1]]
immortal.freeze()
print(*(sys.getrefcount(each) == immortal.IMMORTAL for each in mine))
del mine, node
gc.collect()
new = Node()
new.circle, seen = new, weakref.ref(new)
print(sys.getrefcount(new) < 10)
del new
gc.collect()
print(seen() is None)
"""


@pytest.mark.skipif(not (3, 12) <= sys.version_info < (3, 14), reason="only these versions count to this number")
def test_what_was_made_before_is_immortal_and_later_objects_are_not():
    command = [sys.executable, "-c", PROGRAM]
    ended = subprocess.run(command, cwd=Path(__file__).parent, capture_output=True, text=True, check=True)
    assert ended.stdout.split() == ["True"] * 9
