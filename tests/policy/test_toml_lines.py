"""Every key that begins a line of a TOML text has that line, and nothing else is a key."""

import functools
import operator
import time
import tomllib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from export_core.policy.source import toml_lines

TEXT = '''# a policy, in all the ways that TOML has
title = "a # b [c] = \\" d" # it ends here
[tool.jaxexport]
"goldens" = 'kept = [here]'
windows.backward = 180
windows . forward = 1.5
many = """
[not.a.table]
key = 1 ""\\"
"""
literal = \'\'\'
[[nor.this]] \'\'
\'\'\'
inline = {a = 1, "b c" = {d = [1, [2, 3]]}, when = 2026-10-25 07:32:00}
platforms = [  # with a comment
  "cpu",

  { name = "tpu" },
]

[[tool.jaxexport.known_failures]]
cases = ["a"]
[tool.jaxexport.known_failures.nested]
deep = true
[[tool.jaxexport.known_failures]]
[[tool.jaxexport.known_failures.inner]]
[[tool.jaxexport.known_failures.inner]]
deep = +inf
'''


def test_every_table_and_key_has_its_line():
    lines = toml_lines(TEXT, tomllib.loads(TEXT))
    own = ("tool", "jaxexport")
    assert lines == {
        (): 1, ("title",): 2, ("tool",): 3, own: 3, (*own, "goldens"): 4, (*own, "windows"): 5,
        (*own, "windows", "backward"): 5, (*own, "windows", "forward"): 6, (*own, "many"): 7, (*own, "literal"): 11,
        (*own, "inline"): 14, (*own, "platforms"): 15, (*own, "known_failures"): 21, (*own, "known_failures", 0): 21,
        (*own, "known_failures", 0, "cases"): 22, (*own, "known_failures", 0, "nested"): 23,
        (*own, "known_failures", 0, "nested", "deep"): 24, (*own, "known_failures", 1): 25,
        (*own, "known_failures", 1, "inner"): 26, (*own, "known_failures", 1, "inner", 0): 26,
        (*own, "known_failures", 1, "inner", 1): 27, (*own, "known_failures", 1, "inner", 1, "deep"): 28,
    }  # fmt: skip


def test_a_line_of_a_long_text_is_no_key_though_it_looks_like_one_that_is_there():
    text = 'a = """\n[t]\nk = 1\n"""\nb = \'\'\'\nc = 1 # ""\'\'\'\n# """\nc = \'"""\'\nd = "\'\'\'" # \'\n[t]\nk = 2\n'
    where = {"a": 1, "b": 5, "c": 8, "d": 9, "t": 10}
    assert toml_lines(text, tomllib.loads(text)) == {
        (): 1,
        ("t", "k"): 11,
        **{(key,): line for key, line in where.items()},
    }


def test_a_line_of_a_list_that_looks_like_a_table_is_none():
    text = 'a = [\n["t"]\n]\nb = 1\n'
    assert toml_lines(text, tomllib.loads(text)) == {(): 1, ("a",): 1, ("b",): 4}


PLAIN = st.sampled_from(
    ["1", "-2.5e3", "true", '"a = 1 # b"', "'[x]'", '"""\n[y]\nz = 1\n"""', "2026-10-25", "'''q'''"]
)
NAMES = st.lists(st.sampled_from(["a", "b-c", '"d e"', "'f.g'", "7"]), min_size=1, max_size=3).map(".".join)
VALUES = st.recursive(
    PLAIN,
    lambda inner: (
        st.lists(inner, max_size=3).map(lambda some: "[\n" + ", # x\n".join([*some, ""]) + "]")
        | st.lists(inner, max_size=2).map(lambda some: "{" + ", ".join(f"k{n} = {v}" for n, v in enumerate(some)) + "}")
    ),
    max_leaves=6,
)
LINES = st.one_of(
    st.tuples(NAMES, VALUES).map(" = ".join),
    NAMES.map("[{}]".format),
    NAMES.map("[[{}]] # t".format),
    st.just("# [c]"),
    st.just(""),
)


@given(st.lists(LINES, max_size=8))
def test_whatever_tomllib_takes_has_lines_of_its_own_keys(some):
    text, keys = "", {()}
    for line in some:  # those that go with the ones before
        try:
            data = tomllib.loads(f"{text}{line}\n")
        except tomllib.TOMLDecodeError:
            continue
        text += f"{line}\n"
        before, keys = keys, set(toml_lines(text, data))
        assert keys >= before, "a line more takes no key away"
    for key in keys:
        functools.reduce(operator.getitem, key, tomllib.loads(text))


@pytest.mark.parametrize(
    "value", ['"""\n' + "some words of a text\n" * 5_000 + '"""', "[\n" + '"abc", # d\n' * 5_000 + "]"]
)
def test_a_long_value_is_read_once_and_not_once_a_line(value):
    text = f"[tool.x]\na = {value}\nb = 1\n"
    data, started = tomllib.loads(text), time.process_time()
    assert toml_lines(text, data)["tool", "x", "b"] == 5_004
    assert time.process_time() - started < 5
