"""Remarks on outputs and inputs that show nothing, with NumPy functions in place of programs."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from export_core.goldens import Leaf
from export_core.goldens.arrays import key_leaf, leaf_of
from export_core.numbers.noise import moved_by
from export_core.numbers.other_inputs import other_runs
from export_core.numbers.shows_nothing import (
    Remark,
    Seen,
    is_named,
    meant_line,
    remark_lines,
    unknown_leaves,
    whole_trees,
)

RANDOM = np.random.default_rng(0)
X = RANDOM.standard_normal((8, 16)).astype(np.float32)
W = RANDOM.standard_normal((16, 4)).astype(np.float32)
IMAGE = RANDOM.uniform(0, 1, (8, 8)).astype(np.float32)
MASK = RANDOM.random((8, 16)) > 0.5
LABELS = np.asarray([1, 2, 3, 4, 1, 0, 9, 8], np.int32)
COLUMNS = np.float32(1e4) * W


def remarks(function: Callable[..., Any], *arrays: Any, used: Any = None, calls: Any = ()) -> dict[str, str]:
    """Return the remarks on a function of arrays, by leaf; `used` are the inputs that its program takes."""

    def outputs(leaves: Any) -> list[Leaf]:
        with np.errstate(all="ignore"):
            given = function(*(leaf.numpy() for leaf in leaves))
        return [leaf_of(np.asarray(output)) for output in (given if isinstance(given, tuple) else (given,))]

    inputs = [leaf if isinstance(leaf, Leaf) else leaf_of(np.asarray(leaf)) for leaf in arrays]
    used = range(len(inputs)) if used is None else used
    runs = [(run, outputs(leaves)) for run, leaves in other_runs(inputs, used, 1000) if run.changed]
    moved = [outputs([moved_by(1, leaf, np.random.default_rng([seed])) for leaf in inputs]) for seed in range(6)]
    further = [outputs([leaf_of(np.asarray(array)) for array in call]) for call in calls]
    return {remark.leaf: remark.text for remark in Seen(inputs, used, outputs(inputs), runs, moved, further).remarks()}


def softmax(x: Any) -> Any:
    powers = np.exp(x - x.max(-1, keepdims=True))
    return powers / powers.sum(-1, keepdims=True)


def sigmoid(x: Any) -> Any:
    return 1 / (1 + np.exp(-x))


def bytes_of(image: Any) -> Any:
    return np.clip(image * 255, 0, 255).astype(np.uint8)


FOR_OTHERS = "choose inputs for which some are not: for which a mask lets something through, or a ReLU is positive"
NO_EFFECT = "no output changes with this input: choose inputs for which it has an effect, such as another flag or mask"
SAME = "are the same with all of 16 other inputs too: choose inputs on which it depends"


@pytest.mark.parametrize(
    ("function", "arrays", "leaf", "text"),
    [
        (lambda x: np.arange(5.0), [X], "output 0", f"its 5 elements {SAME}"),
        (lambda x: (x, np.int32(3)), [X], "output 1", "it is 3 with all of 16 other inputs too: choose inputs on"),
        (
            lambda x: np.maximum(x - 99, 0),
            [X],
            "output 0",
            f"all 128 elements are 0, with other inputs too: {FOR_OTHERS}",
        ),
        (np.where, [np.zeros(X.shape, bool), X, np.float32(0)], "output 0", "all 128 elements are 0"),
        (lambda x, mask: x * mask, [X, 0 * X], "output 0", "(input 1 is the same in all elements)"),
        (lambda x: softmax(x @ COLUMNS), [X], "output 0", "32 of 32 elements are 0 or 1, where it is saturated"),
        (lambda x: sigmoid(1e5 * x), [X], "output 0", "128 of 128 elements are 0 or 1, where it is saturated"),
        (lambda x: np.tanh(1e5 * x), [X], "output 0", "128 of 128 elements are -1 or 1, where it is saturated"),
        (lambda x: np.clip(1e4 * x, 0, 6), [X], "output 0", "128 of 128 elements are 0 or 6, where it is saturated"),
        (sigmoid, [abs(X) + 50], "output 0", "all 128 elements are 1, with other inputs too: choose inputs for which"),
        (lambda x: bytes_of(1000 * x), [X], "output 0", "128 of 128 elements are 0 or 255, where it is saturated"),
        (lambda labels: 3 * labels, [np.full(16, 2)], "output 0", "all 16 elements are 6"),
        (lambda labels: 3 * labels, [np.full(16, 2)], "input 0", "all 16 elements of this input are 2: choose numbers"),
        (lambda x: x.argmax(-1) * 0 + 7, [X], "output 0", "all 8 elements are 7, with other inputs too"),
        (
            lambda x: x > -99,
            [X],
            "output 0",
            "all 128 elements are True, with other inputs too: choose inputs for which",
        ),
        (lambda x: np.tanh(x @ W + 1), [0 * X], "input 0", "all 128 elements of this input are 0: choose numbers that"),
        (lambda x, w: np.tanh(x @ w), [0 * X, W], "output 0", "all 32 elements are 0"),
        (lambda x, w, b: np.tanh(x @ w + b), [0 * X, W, W[0]], "input 1", NO_EFFECT),
        (lambda x: np.exp(-x), [abs(X) + 999], "output 0", "all 128 elements are 0, with other inputs too"),
        (lambda x: x.prod(), [IMAGE * np.float32(1e-3)], "output 0", "it is 0 with all of 16 other inputs too"),
        (lambda x: np.exp(x), [1e4 * X + 1e4], "output 0", "are infinite or NaN: choose smaller inputs"),
        (
            lambda x: np.log(x),
            [-abs(X)],
            "output 0",
            "128 of 128 elements are NaN: choose inputs for which the function",
        ),
        (
            lambda x: 2 * x,
            [np.ones((4, 4), np.float32)],
            "output 0",
            "all 16 elements are 2 (input 0 is the same in all",
        ),
        (lambda x, y: x + 0 * y, [X, X[::-1]], "input 1", NO_EFFECT),
    ],
)
def test_an_input_or_output_that_can_prove_nothing_has_a_remark(function, arrays, leaf, text):
    assert text in remarks(function, *arrays)[leaf]


def test_an_unused_input_has_a_remark():
    assert remarks(lambda x, y: x, X, W, used=[0]) == {
        "input 1": "no output depends on this input: is it meant to be unused?"
    }


NAN, INF = np.full(4, np.nan, np.float32), np.float32(np.inf)


@pytest.mark.parametrize(
    ("function", "arrays", "text"),
    [
        (lambda x, best: (x, best), [X, NAN], "4 of 4 elements are NaN, as input 1 is: give that numbers, or name"),
        (
            lambda x, best: (x, best),
            [X, INF],
            "1 of 1 element is infinite or NaN, as input 1 is: give that a number, or",
        ),
        (lambda x, best: (x, -best), [X, INF], "1 of 1 element is infinite or NaN: choose smaller inputs, or others"),
        (lambda x: (x, np.log(-abs(x[0, :1]))), [X], "1 of 1 element is NaN: choose inputs for which the function"),
    ],
    ids=["NaN handed through", "infinity handed through", "another infinity", "computed"],
)
def test_the_remark_on_nan_passed_through_names_the_input(function, arrays, text):
    assert remarks(function, *arrays)["output 1"].startswith(text)


def test_a_nan_output_is_traced_to_the_input_of_the_same_path():
    leaves = [leaf_of(np.asarray(array)) for array in (X, NAN, NAN, 0 * NAN - INF)]
    paths = (["args[0]", "args[1].worst", "args[1].best", "args[1].last"], ["result.x", "result.best", "result.last"])
    seen = Seen(leaves, range(4), [leaves[0], leaves[1], leaves[1]], [], paths=paths)
    assert [(remark.leaf, remark.text) for remark in seen.remarks()] == [
        (
            "result.best",
            "4 of 4 elements are NaN, as args[1].best is: give that numbers, or name this leaf in constant=",
        ),
        (
            "result.last",
            "4 of 4 elements are NaN, as args[1].last is: give that numbers, or name this leaf in constant=",
        ),
    ]


@pytest.mark.parametrize("result", ["result", "result[1]"])
def test_an_infinite_output_without_a_path_is_traced_to_no_input(result):
    leaves = [leaf_of(np.asarray(array)) for array in (NAN[0], INF)]
    (remark,) = Seen(
        leaves, [0, 1], [leaf_of(np.asarray(-INF))], [], paths=(["args[0]", "args[1]"], [result])
    ).remarks()
    assert "choose smaller inputs" in remark.text


SPD = W @ W.T + 16 * np.eye(16, dtype=np.float32)
KEY = key_leaf("key<fry>", np.asarray([0, 42], np.uint32))


@pytest.mark.parametrize(
    ("function", "arrays"),
    [
        (lambda x: x.sum(), [X]),
        (np.where, [MASK, X, np.float32(0)]),
        (lambda labels: np.eye(10, dtype=np.float32)[labels], [LABELS]),
        (lambda labels: np.bincount(labels, minlength=12), [LABELS]),
        (lambda x, w: np.maximum(x @ w, 0), [X, W]),
        (lambda x, w, b: np.maximum(x @ w + b, 0), [X, W, 0 * W[0]]),
        (lambda x: x.argmax(-1), [X]),
        (lambda x: x[0, :3].argmax(), [X]),
        (lambda x: (x > 0).sum(), [X]),
        (lambda x: np.broadcast_to(x.mean(), (8, 8)), [X]),
        (lambda x: softmax(np.where(np.tril(np.ones((8, 8), bool)), x @ x.T, -np.inf)), [X]),
        (lambda x, mask: softmax(np.where(mask, x @ x.T, -np.inf)), [X, np.tril(np.ones((8, 8), bool))]),
        (lambda key: key.astype(np.float32) / 3, [KEY]),
        (lambda key: key.astype(np.float32) / 3, [np.zeros(2, np.uint32)]),
        (lambda x: bytes_of(1.5 * x), [IMAGE]),
        (lambda x: (x > 0).astype(np.float32), [X]),
        (lambda x: np.round(x).astype(np.int8), [X]),
        (lambda x: np.where(x < 1, x, np.nan), [X]),
        (lambda x: np.where(x >= np.sort(x)[:, -2:-1], x, -np.inf), [X]),
        (lambda step, x: (step + 1, x), [np.int32(0), X]),
        (lambda x, m: (0.9 * m + 0.1 * x, x), [X, 0 * X]),
        (lambda a: np.linalg.eigvalsh(a), [SPD]),
        (lambda x, start: x[start : start + 2], [X, np.int32(3)]),
        (lambda flag, x: 2 * x if flag else x - 1, [True, X]),
        (lambda a, b: a * b + 1, [np.float32(2), np.float32(3)]),
        (lambda x: x.sum() > 0, [X]),
        (lambda x: (x[:3, :4] > 0).any(0), [X[:3, :4]]),
        (lambda x: x / np.linalg.norm(x), [X]),
        (lambda ids: ids // 2 + 5, [np.asarray([5, 7, 9, 5, 9, 7, 7, 5], np.int32)]),
        (lambda: np.arange(8.0), []),
    ],
)
def test_outputs_that_depend_on_their_inputs_have_no_remark(function, arrays):
    assert remarks(function, *arrays) == {}


def test_an_output_that_differs_in_another_call_has_no_remark():
    assert remarks(lambda x: np.maximum(x, 0), -abs(X), calls=[[X]]) == {}


def test_an_input_that_has_an_effect_in_another_call_gets_no_remark():
    def scaled(x, y):
        return x + 0 * y

    assert remarks(scaled, X, X, calls=[[X + 1, X]]) == {}


KINDS = {
    "floats": X,
    "positive": abs(X) + 1,
    "integers": LABELS,
    "booleans": MASK,
    "zeros": 0 * X,
    "one integer": np.full(4, 2),
    "mask": MASK.astype(np.float32),
    "matrix": SPD,
    "float16": X.astype(np.float16),
    "complex": X + 1j * X[::-1],
    "scalar": np.float32(2),
    "largest": np.uint8(255),
}


@pytest.mark.parametrize("kind", KINDS)
def test_changed_inputs_keep_dtype_shape_sign_and_definiteness(kind):
    given = leaf_of(KINDS[kind])
    others = [leaves[0] for run, leaves in other_runs([given], [0], 1000) if run.kind == "other"]
    assert {(leaf.dtype, leaf.shape) for leaf in others} == {(given.dtype, given.shape)}
    changed = [not np.array_equal(leaf.numpy(), given.numpy()) for leaf in others]
    assert set(changed) == {kind not in ("zeros", "one integer")}
    for values in (leaf.numpy() for leaf in others):
        if given.dtype in ("int32", "bool"):
            assert set(values.flat) <= set(given.numpy().flat)
        elif values.size > 1:
            assert np.abs(values).max() <= np.abs(given.numpy()).max()
            assert (values > 0).all() or kind != "positive"
            if kind == "matrix":
                np.linalg.cholesky(values)


def test_functions_of_large_arrays_are_run_only_a_few_times():
    runs = [run.kind for run, _ in other_runs([leaf_of(X)] * 3, range(3), 0)]
    assert runs == ["other", "other", "other", "small"]


def test_many_inputs_are_changed_in_groups():
    alone = [run for run, _ in other_runs([leaf_of(X)] * 100, range(100), 1000) if run.kind == "alone"]
    assert len(alone) == 32
    assert sorted(number for run in alone for number in run.changed) == list(range(100))


def test_leaves_with_the_same_remark_share_a_line():
    found = [Remark(f"result[{number}]['x']", "why") for number in range(7)]
    assert remark_lines(found, ["result[6]"]) == ["result[0]['x'], result[1]['x'], result[2]['x'] and 3 more: why"]


def test_a_shortened_line_of_remarks_says_how_to_see_all():
    found = [Remark(f"result[{number}]", "why") for number in range(7)]
    assert remark_lines(found, how_to_see="-v") == ["result[0], result[1], result[2] and 4 more (-v names all): why"]
    names = "result[0], result[1], result[2], result[3], result[4], result[5], result[6]"
    assert remark_lines(found, whole=True, how_to_see="-v") == [f"{names}: why"]
    assert remark_lines(found[:4], how_to_see="-v") == ["result[0], result[1], result[2], result[3]: why"]
    many = [Remark(str(number), str(number)) for number in range(20)]
    rest = "and 12 more remarks on leaves that show nothing"
    assert remark_lines(many)[-1] == rest
    assert remark_lines(many, how_to_see="-v")[-1] == f"{rest} (-v names all)"
    assert remark_lines(many, whole=True) == [f"{number}: {number}" for number in range(20)]


TREE = ["args[0]", "args[1].w[0]", "args[1].w[1]", "args[1].b", "args[2]['a.b']", "args[2]['a.c']", "args[2]['d[0]']"]


@pytest.mark.parametrize(
    ("names", "shorter"),
    [
        (TREE[1:4], ["args[1]"]),
        (TREE[1:3], ["args[1].w"]),
        (TREE[2:4], ["args[1].w[1]", "args[1].b"]),
        (TREE[4:6], ["args[2]['a.b']", "args[2]['a.c']"]),
        (TREE, ["args[0]", "args[1]", "args[2]"]),
    ],
    ids=["an argument", "a part", "not all", "keys with dots", "all"],
)
def test_one_path_is_named_for_all_leaves_of_a_subtree(names, shorter):
    assert whole_trees(names, TREE) == shorter
    assert [leaf for leaf in TREE if is_named(leaf, shorter)] == names
    assert remark_lines([Remark(name, "why") for name in names], leaves=TREE) == [f"{', '.join(shorter)}: why"]


def test_a_subtree_of_one_leaf_is_named_by_the_path_of_the_leaf():
    assert whole_trees(["result"], ["args[0]", "result"]) == ["result"]
    assert whole_trees(["result['a']"], ["args[0]", "result['a']"]) == ["result['a']"]
    assert whole_trees(["result.a", "result.b"], ["args[0]", "result.a", "result.b"]) == ["result"]


def test_a_path_also_names_all_leaves_below_it():
    assert is_named("result['state'].mu[0]", ["result['state']"])
    assert not is_named("result['state_2']", ["result['state"])
    assert unknown_leaves(["args[0]", "args[1]"], ["args[0]['x']", "result"]) == ["args[1]"]


def test_the_suggested_marker_adds_remarked_leaves_to_its_constant():
    remarks = [Remark(name, "why") for name in ("result[1]", "args[0]['w']['a']", "args[0]['w']['b']", "args[1]")]
    leaves = ["args[0]['w']['a']", "args[0]['w']['b']", "args[0]['x']", "args[1]", "result[0]", "result[1]"]
    line = meant_line("tests/test_a.py::test_f[x-1]", remarks, ["args[1]"], leaves)
    assert line == """  tests/test_a.py::test_f: export_compat(constant=["args[1]", "result[1]", "args[0]['w']"])"""


def test_eight_of_many_leaves_are_printed_and_the_rest_is_counted():
    remarks = [Remark(f'args["{number}"]', "why") for number in range(10)]
    assert meant_line("test_f", remarks, (), ()).endswith("""'args["7"]']) and 2 more (-v names all)""")
    assert """'args["9"]'])""" in meant_line("test_f", remarks, (), (), whole=True)
