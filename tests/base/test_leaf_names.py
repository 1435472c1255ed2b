"""How messages name a leaf: by its number, with its path in the tree where that says more."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from export_core.base.leaf_names import LONGEST, numbered, of_derivative, path_at, without_paths

B1 = "result[0]['b1']"
OLD = (
    "output 0 float32[8]: 3 of 8 elements differ (max abs error 1; allowed 4 times the noise of each)\n"
    "also out of tolerance: 1 other output, the largest error in output 2 float32[2]: max abs error 7"
)


@pytest.mark.parametrize(
    ("number", "path", "name"),
    [
        (0, B1, "0 (result[0]['b1'])"),
        ("vjp1/0", "derivative by args[0]['w']", "vjp1/0 (derivative by args[0]['w'])"),
        (3, "", "3"),  # the tree is not known
        (0, "result", "0"),  # the function returns one array
    ],
)
def test_a_leaf_is_named_by_its_number_and_path(number, path, name):
    assert numbered(number, path) == name


def test_the_middle_of_a_long_path_is_left_out():
    path = "result" + "".join(f"['layer_{number}']" for number in range(20)) + "['kernel']"
    name = numbered(7, path)
    assert len(name) == len("7 ()") + LONGEST
    assert name.startswith("7 (result['layer_0']")
    assert name.endswith("['layer_19']['kernel'])")


def test_a_leaf_number_beyond_the_known_paths_gives_no_path():
    assert [path_at([B1], number) for number in (0, 1)] == [B1, ""]


def test_paths_of_a_derivative_name_arguments_and_cotangents():
    first = of_derivative(["args[0]"], ["result['y']"])
    assert first == (["args[0]", "the cotangent of result['y']"], ["derivative by args[0]"])
    assert of_derivative(*first)[1][1] == "derivative by the cotangent of result['y']"


@pytest.mark.parametrize(
    ("new", "old"),
    [
        (OLD.replace("output 0", f"output {numbered(0, B1)}").replace("output 2", "output 2 (result.b)"), OLD),
        ("output 1 (result['a'][0]): expected int8[1], got int4[1]", "output 1: expected int8[1], got int4[1]"),
        ("vjp1: output 0 (derivative by args[0]) key<fry>[2]: 1", "vjp1: output 0 key<fry>[2]: 1"),
        ("outputs 4 (result[0]), 5 (result['(']) as qr: Q R: 1", "outputs 4, 5 as qr: Q R: 1"),
        ("output 1 (result[1]) is sharded differently", "output 1 is sharded differently"),
        ("eigh: output 1 (result[1]), where it is not finite", "eigh: output 1, where it is not finite"),
        ("died by signal 11 (SIGSEGV)", "died by signal 11 (SIGSEGV)"),
        (OLD, OLD),
    ],
)
def test_removing_leaf_paths_from_a_message_gives_its_older_form(new, old):
    assert without_paths(new) == old


@given(st.lists(st.text(), min_size=1, max_size=4))
def test_the_path_of_any_keys_is_removed_from_a_message(keys):
    path = "result" + "".join(f"[{key!r}]" for key in keys)
    # A key that looks like the end of a path is taken for it: such a message is only compared less well.
    if not any(mark in path for mark in ("):", "),", ");", ") ")):
        assert without_paths(f"output {numbered(3, path)} float32[8]: 3 of 8") == "output 3 float32[8]: 3 of 8"
