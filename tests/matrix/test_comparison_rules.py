"""Rules of the policy's `numbers`, which correct a comparison without writing a golden again."""

import dataclasses
import functools
from contextlib import closing

import msgspec
import numpy as np
import pytest
from making import day, golden

from export_core.goldens import Comparison, GoldenStore
from export_core.goldens.adopt import adopt_artifact
from export_core.goldens.arrays import from_npz, leaf_of, to_npz
from export_core.goldens.manifest import UNKNOWN
from export_core.goldens.store import ARTIFACT, INPUTS, OUTPUTS, sha256
from export_core.judge.accepted import Accepted
from export_core.judge.weakening import accepted_in
from export_core.matrix import Cell, MatrixError, Selection, Verdict, make_plan
from export_core.matrix.cache_keys import OutcomeKeys
from export_core.matrix.comparisons import under_policy
from export_core.matrix.replay_options import ReplayOptions
from export_core.numbers.user_code import UserCode
from export_core.policy import Policy
from export_core.policy.entries import NumbersRule, Quirk
from export_core.policy.run_options import RunOptions
from export_core.readers.environment import this_interpreter
from export_core.releases import load_calendar
from export_core.run.session import Interpreter, run_matrix

pytestmark = pytest.mark.usefixtures("forked_workers")

RULE = NumbersRule(("t.f",), "measured", rtol=1e-3, location="/home/me/export_compat.yaml:12")
QUIRK = Quirk(
    "t.f", "*", "rounded otherwise", "me", "#7", added=day("2026-10-01"), rtol={"float32": 0.5},
    expires=day("2026-12-01"), location="export_compat.yaml:30",
)  # fmt: skip


@pytest.mark.parametrize(
    ("cases", "writers", "matched"),
    [
        (("t.f",), ("*",), ["t.f/0.9.2-cpu", "t.f/0.12.0.1-cpu"]),
        (("t.*",), ("0.9.*",), ["t.f/0.9.2-cpu", "t.g[x]/0.9.2-cpu"]),
        (("t.g[x]",), ("0.9.2-cpu",), ["t.g[x]/0.9.2-cpu"]),
        (("t.f", "t.g*"), ("0.8.*",), []),
    ],
)
def test_a_rule_applies_to_its_cases_and_writers(cases, writers, matched):
    goldens = [golden("t.f", "0.9.2"), golden("t.f", "0.12.0.1"), golden("t.g[x]", "0.9.2")]
    rule = msgspec.structs.replace(RULE, cases=cases, writers=writers)
    changed = under_policy(goldens, Policy(numbers=(rule,)))
    assert [one.id for one in changed if one.compared_as.comparison == Comparison(rtol=1e-3)] == matched
    others = [
        (one.compared_as, old.compared_as) for one, old in zip(changed, goldens, strict=True) if one.id not in matched
    ]
    assert all(now == recorded for now, recorded in others)
    assert [one.manifest for one in changed] == [one.manifest for one in goldens], "as they are on disk"


@pytest.mark.parametrize(
    ("numbers", "now"),
    [
        ((RULE, NumbersRule(("*",), "never reached", atol=9.0)), Comparison(rtol=1e-3)),
        ((NumbersRule(("*",), "too wide"),), Comparison()),
    ],
    ids=["the first one", "one without tolerances"],
)
def test_a_rule_replaces_the_whole_recorded_comparison(numbers, now):
    recorded = golden("t.f", comparison=Comparison("eigh", rtol=0.1, atol=0.2))
    (changed,) = under_policy([recorded], Policy(numbers=numbers))
    assert changed.compared_as.comparison == now


def test_a_quirk_relaxes_a_rule_and_each_tolerance_names_its_source():
    by_dtype = msgspec.structs.replace(RULE, rtol={"float32": 1e-3, "float64": 1e-6}, atol=1e-9)
    (changed,) = under_policy([golden("t.f")], Policy(numbers=(by_dtype,), quirks=(QUIRK,)))
    assert changed.compared_as.comparison == Comparison(rtol={"float32": 0.5, "float64": 1e-6}, atol=1e-9)
    rule, quirk = "export_compat.yaml:12", "export_compat.yaml:30"
    assert changed.compared_as.sources["rtol"] == {"float32": quirk, "float64": rule}
    assert changed.compared_as.sources["atol"] == rule


def test_each_dtype_has_the_source_of_its_tolerance():
    recorded = golden("t.f", comparison=Comparison(rtol={"float16": 0.1}))
    (changed,) = under_policy([recorded], Policy(quirks=(QUIRK,)))
    assert changed.compared_as.sources["rtol"] == {"float16": "golden", "float32": "export_compat.yaml:30"}


def test_a_quirk_of_tolerances_on_an_exact_rule_is_an_error():
    exact = NumbersRule(("*",), "integers", compare="exact")
    with pytest.raises(MatrixError, match=r"found t\.f with 'exact', which takes none"):
        under_policy([golden("t.f")], Policy(numbers=(exact,), quirks=(QUIRK,)))


def test_a_numbers_rule_is_listed_as_accepted_with_its_goldens():
    accepted = accepted_in([golden("t.f", "0.9.2"), golden("t.g", "0.9.2")], Policy(numbers=(RULE,)))
    assert accepted == [Accepted("numbers: rtol 0.001", "measured", ("t.f/0.9.2-cpu",))]


def test_a_comparator_is_imported_only_for_a_plan_that_runs():
    rule = NumbersRule(("*",), "ours", compare="no_such_module:f")
    goldens = under_policy([golden("t.f")], Policy(numbers=(rule,)))
    make = functools.partial(make_plan, goldens, load_calendar(), Policy().window_lengths(), Selection())
    with closing(UserCode()) as user_code, pytest.raises(Exception, match="cannot import no_such_module"):
        make(day("2026-11-20"), user_code)
    assert make(day("2026-11-20")).goldens, "a plan that is only shown needs no project"


def test_a_rule_and_its_line_change_the_cache_key_of_an_outcome(goldens, here):
    environment = dataclasses.replace(this_interpreter(here), content_hash="known")

    def key(*numbers: NumbersRule) -> str:
        policy = Policy(numbers=numbers)
        (one,) = under_policy([goldens["waves"]], policy)
        return OutcomeKeys(ReplayOptions(load_calendar(), policy)).of(Cell(one, here, "cpu"), environment)

    rule = msgspec.structs.replace(RULE, cases=("waves",))
    moved = msgspec.structs.replace(rule, location="export_compat.yaml:13")
    elsewhere = msgspec.structs.replace(rule, location="/another/export_compat.yaml:12")
    assert len({key(), key(rule), key(moved), key(RULE)}) == 3
    assert key(rule) == key(elsewhere)
    assert key() == key(RULE), "a rule of other goldens changes nothing"


# --- replayed -------------------------------------------------------------------------------------------------------


@pytest.fixture
def store(goldens, tmp_path) -> GoldenStore:
    """A store whose outputs are off by 1e-3: two generations of `waves`, and an adopted golden."""
    own, store = goldens["waves"], GoldenStore(tmp_path / "golden")
    files = {name: own.content(name) for name in (ARTIFACT, INPUTS)}
    files[OUTPUTS] = to_npz([leaf_of(leaf.numpy() + np.float32(1e-3)) for leaf in from_npz(own.folder / OUTPUTS)])
    hashed = msgspec.structs.replace(own.manifest, files={name: sha256(data) for name, data in files.items()})
    older = load_calendar().release("0.9.2")
    writer = msgspec.structs.replace(own.manifest.writer, jaxlib=older.jaxlib, jax=older.jax, built=older.built)
    for made in (hashed, msgspec.structs.replace(hashed, writer=writer)):
        store.write(made, files)
    paths = {name: tmp_path / name for name in (INPUTS, OUTPUTS)}
    for name, path in paths.items():
        path.write_bytes(files[name])
    unknown = msgspec.structs.replace(own.manifest.writer, python=UNKNOWN)
    store.write(*adopt_artifact(own.read_artifact(), paths[INPUTS], paths[OUTPUTS], "adopted", unknown))
    return store


@pytest.fixture
def replay(store, here, warm_workers):
    """A function that replays the goldens under rules and returns the verdict and message of each."""

    def run(*numbers: NumbersRule) -> dict[str, tuple[Verdict, str]]:
        before = {path: path.read_bytes() for path in store.root.rglob("*.yaml")}
        policy, options = Policy(numbers=numbers), RunOptions(results=None, cache=False)
        interpreter = Interpreter(this_interpreter(here), warm_workers.start)
        ended = run_matrix(policy, Selection(), options, goldens=store.goldens(), interpreter=interpreter)
        assert {path: path.read_bytes() for path in store.root.rglob("*.yaml")} == before
        return {result.golden: (result.verdict, result.message.partition("; ")[2]) for result in ended.results}

    return run


def test_a_numbers_rule_applies_to_every_writer_and_adopted_golden(replay):
    assert {verdict for verdict, _ in replay().values()} == {Verdict.NUMERICS}
    wide = NumbersRule(("*",), "measured", atol=1e-2)
    assert [*replay(wide).values()] == [(Verdict.PASS, "")] * 3
    of_one = replay(msgspec.structs.replace(wide, cases=("adopted",)))
    assert {name.partition("/")[0] for name, (verdict, _) in of_one.items() if verdict is Verdict.PASS} == {"adopted"}


def test_cells_that_a_stricter_rule_fails_name_the_rule(replay):
    wide, strict = NumbersRule(("*",), "measured", atol=1e-2), msgspec.structs.replace(RULE, cases=("*",), rtol=1e-6)
    outcomes = replay(msgspec.structs.replace(strict, writers=("0.9.2",)), wide)
    older = {name: outcome for name, outcome in outcomes.items() if outcome[0] is Verdict.NUMERICS}
    assert [name.partition("/")[2] for name in older] == ["0.9.2-cpu"]
    ((_, message),) = older.values()
    assert message.startswith("allowed rtol 1e-06, atol 1.08e-06 (export_compat.yaml:12))")


def test_cells_that_an_exact_rule_fails_name_the_rule(replay):
    exact = NumbersRule(("*",), "bits", compare="exact", location="export_compat.yaml:7")
    messages = {message.splitlines()[0] for _, message in replay(exact).values()}
    assert messages == {"allowed equal bits (export_compat.yaml:7))"}
