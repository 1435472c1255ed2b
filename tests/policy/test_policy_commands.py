"""`jaxexport policy`: init writes a first one, check finds its errors, show prints values and their origin."""

import re
from pathlib import Path

import jsonschema
import pytest
import yaml
from commands import assert_bad_input
from making import files, manifest, write_golden

from export_core.base.errors import PREFIX
from export_core.goldens import GoldenStore, Options
from export_core.policy import Policy, PolicyError, load_policy
from tools.schemas import schema, written


def test_init_writes_a_policy_from_the_goldens(jaxexport, cwd):
    store = GoldenStore(cwd / "kept")
    write_golden(store, manifest("t.a", "0.12.0.1"))
    write_golden(store, manifest("t.a", "0.9.2", options=Options(("cpu", "tpu"))))
    scaled = (
        Path(__file__).parents[2] / "golden" / "tests.compat.test_safety_checks.test_allowed_target" / "0.12.0.1-cpu"
    )
    unlisted = {**files(), "artifact.jaxexport": (scaled / "artifact.jaxexport").read_bytes()}
    write_golden(store, manifest("t.q", "0.12.0.1"), unlisted)
    ended = jaxexport("policy", "init", "--goldens", "kept")
    assert (ended.code, ended.err) == (0, "")
    text = (cwd / "export_compat.yaml").read_text()
    assert text.startswith("# yaml-language-server: $schema=export_compat.schema.json\n")
    assert (cwd / "export_compat.schema.json").read_bytes() == written("policy")
    assert "Found here: 3 goldens of 2 cases by jaxlib 0.9.2, 0.12.0.1." in text
    assert "  # tpu: compile  # 1 golden exported for it\n" in text
    assert '#   pytest_jaxexport.scale: ""  # called by t.q/0.12.0.1-cpu\n' in text
    policy = load_policy(cwd / "export_compat.yaml")
    assert (policy.goldens, policy.platforms, policy.windows.backward) == ("kept", {"cpu": "run"}, 180)
    jsonschema.validate(yaml.safe_load(text), schema("policy"))
    assert jaxexport("policy", "check").code == 0


def test_init_does_not_write_through_a_symbolic_link(jaxexport, cwd):
    (cwd / "export_compat.schema.json").symlink_to("nowhere")
    jaxexport("policy", "init", code=0)
    assert (cwd / "export_compat.yaml").is_file()
    assert not (cwd / "nowhere").exists()


def test_commented_parts_of_a_first_policy_are_valid(jaxexport, cwd):
    jaxexport("policy", "init")
    path = cwd / "export_compat.yaml"
    taken = re.sub(r"^# ?(?=(  )*(- )?[a-z0-9_]+:)", "", path.read_text(), flags=re.MULTILINE)
    path.write_text(taken)
    with pytest.raises(PolicyError, match=r"quirks\[0\]\.reason: expected your own text in the place of 'TODO'"):
        load_policy(path)
    path.write_text(taken.replace("TODO", "filled in"))
    policy = load_policy(path)
    assert (policy.rtol, list(policy.allow), list(policy.tolerances)) == ({"float32": 1e-5}, ["my_target"], ["tpu"])
    assert [rule.cases for rule in policy.numbers] == [("tests.test_model.*",)]
    assert [quirk.case for quirk in policy.quirks] == ["tests.test_model.test_attention"]


@pytest.mark.parametrize("name", ["export_compat.yaml", "pyproject.toml"])
def test_init_never_overwrites_a_policy(jaxexport, cwd, name):
    text = "[tool.jaxexport]\n" if name == "pyproject.toml" else "goldens: mine\n"
    (cwd / name).write_text(text)
    assert_bad_input(jaxexport("policy", "init"), f"{name}: this project already has a policy. Nothing was written")
    assert "reason" in jaxexport("policy", "init", "--dry-run", code=0).out, "it only prints"
    assert [(path.name, path.read_text()) for path in cwd.iterdir()] == [(name, text)]


def test_check_names_expired_entries_with_their_line(jaxexport, cwd):
    (cwd / "export_compat.yaml").write_text(
        "known_failures:\n  - {cases: [a], writers: ['*'], readers: ['*'], verdict: crash, stage: run, message: m, "
        "reason: r,\n     owner: o, issue: i, added: 2026-10-01, expires: 2026-12-01}\n"
    )
    assert jaxexport("policy", "check", "--as-of", "2026-12-01").code == 0
    ended = jaxexport("policy", "check", "--as-of", "2026-12-02", code=4)
    assert ended.out.splitlines()[1:] == [
        "export_compat.yaml:2: known_failures[0] (r; owner o, i): expired on 2026-12-01; this is as of 2026-12-02. "
        "If it is still needed, write a new `expires`, at most 90 days after a new `added`; else delete it.",
        "export_compat.yaml: 1 known-failure entry, 0 quirks, 0 comparison rules, 0 allowed custom calls; 1 expired; "
        "no golden in golden yet",
    ]


def test_check_reports_entries_that_were_added_in_the_future(jaxexport, cwd):
    (cwd / "export_compat.yaml").write_text(
        "known_failures:\n  - {cases: [a], writers: ['*'], readers: ['*'], verdict: crash, stage: run, message: m, "
        "reason: r,\n     owner: o, issue: i, added: 2199-12-15, expires: 2199-12-20}\n"
    )
    assert jaxexport("policy", "check", code=4).out.splitlines()[1:] == [
        "export_compat.yaml:2: known_failures[0] (r; owner o, i): added in the future, on 2199-12-15. Write the day on "
        "which it was added.",
        "export_compat.yaml: 1 known-failure entry, 0 quirks, 0 comparison rules, 0 allowed custom calls; 0 expired, "
        "1 added in the future; no golden in golden yet",
    ]


def test_check_reports_every_error_that_would_end_a_run(jaxexport, cwd):
    (cwd / "checks.py").write_text("def close(expected, actual): ...\n")
    (cwd / "export_compat.yaml").write_text(
        "goldens: kept\nreaders: [windw, newest]\nnumbers:\n"
        "  - {cases: ['*'], compare: 'checks:close', reason: r}\n"
        "  - {cases: ['*'], compare: 'checks:clos', reason: r}\n"
        "  - {cases: ['*'], compare: 'no_such_checks:close', reason: r}\n"
    )
    ended = jaxexport("policy", "check", code=2)
    goldens, readers, function, module = ended.err.splitlines()
    assert f": error: export_compat.yaml:1: goldens: kept: expected goldens, found none in {cwd / 'kept'}. " in goldens
    assert readers.startswith(f"{PREFIX}export_compat.yaml:2: readers: expected window, all, ")
    assert readers.endswith("found 'windw'. Did you mean 'window'?")
    assert function.startswith(f"{PREFIX}export_compat.yaml:5: numbers[1].compare: compare='checks:clos': ")
    assert function.endswith(" has no clos.")
    missing = f"{PREFIX}export_compat.yaml:6: numbers[2].compare: compare='no_such_checks:close': cannot import"
    assert module.startswith(missing)


def test_check_names_keys_that_it_cannot_check_without_goldens(jaxexport, cwd):
    (cwd / "export_compat.yaml").write_text("allow: {my_target: ours}\nreaders: newest\nrequired: {cells: 1}\n")
    warning = "warning: allow, required: no name in them was checked, since there is no golden in golden yet."
    assert jaxexport("policy", "check", code=0).out.splitlines()[0] == warning
    write_golden(GoldenStore(cwd / "golden"), manifest("t.a"))
    assert "allow: no golden calls 'my_target'." in jaxexport("policy", "check", code=0).out.splitlines()[0]


def test_a_pin_names_a_golden_by_its_case_and_jaxlib(jaxexport, cwd):
    write_golden(GoldenStore(cwd / "golden"), manifest("t.a", "0.9.2"))
    for name, code in (("t.a/0.9.2", 0), ("t.a/0.9.1", 2), ("t.a", 2)):
        (cwd / "export_compat.yaml").write_text(f"retention: {{pinned: [{{goldens: [{name}], reason: r}}]}}")
        for words in (("policy", "check"), ("goldens", "prune", "--dry-run")):
            jaxexport(*words, code=code)


def test_check_and_prune_refuse_the_same_pin(jaxexport, cwd):
    (cwd / "export_compat.yaml").write_text(
        "allow: {my_target: r}\nretention:\n  pinned:\n  - {goldens: [t.a/*, t.b/*], reason: in production}\n"
    )
    jaxexport("policy", "check", code=0)  # there is no golden yet
    write_golden(GoldenStore(cwd / "golden"), manifest("t.a"))
    pin = "export_compat.yaml:4: retention.pinned[0]"
    checked = jaxexport("policy", "check")
    advice = "Did you mean 't.a/*'? Correct the pattern, or remove it from its pin."
    assert (checked.code, checked.err) == (2, f"jaxexport: error: {pin}: 't.b/*' matches no golden. {advice}\n")
    assert "allow: no golden calls 'my_target'." in checked.out, "the rest is reported too"
    assert_bad_input(jaxexport("goldens", "prune", "--dry-run"), f"{pin} (in production): 't.b/*' matches no golden.")
    write_golden(GoldenStore(cwd / "golden"), manifest("t.b"))
    jaxexport("policy", "check", code=0)


def test_check_refuses_a_named_folder_without_goldens(jaxexport, cwd):
    assert jaxexport("policy", "check", code=0).out.endswith("; no golden in golden yet\n")
    assert_bad_input(jaxexport("policy", "check", "--goldens", "kept"), "kept: expected goldens, found none in ")
    (cwd / "export_compat.yaml").write_text("goldens: lost\n")
    write_golden(GoldenStore(cwd / "kept"), manifest("t.a"))
    assert "golden in" not in jaxexport("policy", "check", "--goldens", "kept", code=0).out


def test_show_names_the_origin_of_every_value(jaxexport, cwd):
    (cwd / "pyproject.toml").write_text(
        "[tool.jaxexport]\ngoldens = 'kept'\n[tool.jaxexport.windows]\nbackward = 200\n"
        "[[tool.jaxexport.retention.pinned]]\ngoldens = ['*']\nreason = 'r'\n"
        "[[tool.jaxexport.custom_call_changes]]\nold = 'a'\nnew = 'b'\nintroduced = 2026-02-04\nrelease = 2026-02-28\n"
        "reason = 'r'\nowner = 'o'\nissue = 'i'\n"
    )
    text = jaxexport("policy", "show").out
    assert text.startswith("# pyproject.toml. A key without a line has its default.\n# pyproject.toml\ngoldens: kept\n")
    assert "\n# pyproject.toml\nwindows: {backward: 200, forward: 21}\nreaders: window\nplatforms: {cpu: auto}" in text
    assert "\n# pyproject.toml\ncustom_call_changes:\n- {old: a, new: b, introduced: 2026-02-04, " in text
    assert text.count("# pyproject.toml\n") == 4
    (cwd / "shown.yaml").write_text(text)
    shown = load_policy(cwd / "shown.yaml")
    assert (shown.goldens, shown.windows.backward, len(shown.custom_call_changes)) == ("kept", 200, 1)


def test_show_names_the_file_with_the_projects_releases(jaxexport, cwd):
    (cwd / "export_releases.yaml").write_text("jaxlib:\n  0.13.0: {built: 2026-11-20}\njax: {}\n")
    assert (
        "\n# export_releases.yaml\nreleases:\n  jaxlib:\n    0.13.0:\n      built: 2026-11-20\n"
        in jaxexport("policy", "show").out
    )
    (cwd / "export_compat.yaml").write_text("releases: {jaxlib: {0.13.1: {built: 2026-11-21}}}\n")
    assert "\n# export_compat.yaml:1, export_releases.yaml\nreleases:" in jaxexport("policy", "show").out


def test_show_with_option_without_prints_a_policy_lacking_the_key(jaxexport, cwd):
    (cwd / "export_compat.yaml").write_text("readers: newest\nrequired:\n  cells: 9\n  readers: ['0.12.*']\n")
    (cwd / "part.yaml").write_text(jaxexport("policy", "show", "--without", "required").out)
    part = load_policy(cwd / "part.yaml")
    assert (part.readers, part.required) == ("newest", Policy().required)
    assert (
        "found 'requird'. Did you mean 'required'?" in jaxexport("policy", "show", "--without", "requird", code=2).err
    )


def test_init_that_fails_leaves_no_file(jaxexport, cwd):
    golden = write_golden(GoldenStore(cwd / "golden"), manifest("t.a", "0.12.0.1"))
    (golden.folder / "artifact.jaxexport").unlink()
    assert jaxexport("policy", "init").code != 0
    assert [path.name for path in cwd.iterdir()] == ["golden"]


def test_show_with_schema_prints_the_schema_of_a_policy(jaxexport, cwd):
    assert jaxexport("policy", "show", "--schema").out.encode() == written("policy")


def test_show_prints_known_issues_as_a_loadable_table(jaxexport, cwd):
    printed = jaxexport("policy", "show", "--known").out
    assert printed.startswith("- id: lapack-cold-process\n  title: LAPACK calls crash in a fresh process\n  todo: ")
    (cwd / "own.yaml").write_text(printed)
    (cwd / "export_compat.yaml").write_text("known_issues: own.yaml")
    assert jaxexport("policy", "show", "--known").out == printed
    (cwd / "export_compat.yaml").write_text("known_issues: none.yaml")
    for command in (("policy", "show", "--known"), ("policy", "check"), ("matrix", "--dry-run")):
        assert_bad_input(jaxexport(*command), "none.yaml: cannot read this table of known issues")


def test_a_matrix_names_the_policy_line_of_an_unknown_reader(jaxexport, cwd):
    write_golden(GoldenStore(cwd / "golden"), manifest("t.a", "0.12.0.1"))
    (cwd / "export_compat.yaml").write_text("platforms: [cpu]\nreaders: [windows]\n")
    for command in (("matrix", "--dry-run"), ("matrix",), ("policy", "check")):
        expected = (
            "export_compat.yaml:2: readers: expected window, all, newest",
            "found 'windows'. Did you mean 'window'?",
        )
        assert_bad_input(jaxexport(*command), *expected)
    assert jaxexport("matrix", "--dry-run", "--readers", "0.12.0.1").code == 0


def test_check_of_stable_targets_needs_goldens(jaxexport, cwd):
    ended = jaxexport("policy", "check", "--stable-targets", "lapack_*")
    assert_bad_input(ended, "golden: expected goldens, found none in")


def test_check_names_stable_targets_without_a_golden(jaxexport, cwd):
    store = GoldenStore(cwd / "golden")
    cholesky = Path(__file__).parents[1] / "artifact" / "data" / "0.12.0.1" / "cholesky.jaxexport"
    write_golden(store, manifest("t.a", "0.12.0.1"), {**files(), "artifact.jaxexport": cholesky.read_bytes()})
    assert jaxexport("policy", "check").code == 0
    ended = jaxexport("policy", "check", "--stable-targets", "lapack_?potrf_ffi", code=3)
    named = [line.split()[0] for line in ended.out.splitlines() if "no golden calls it" in line]
    assert named == ["lapack_cpotrf_ffi", "lapack_dpotrf_ffi", "lapack_zpotrf_ffi"]
    assert jaxexport("policy", "check", "--stable-targets", "lapack_spotrf*").code == 0
    assert_bad_input(
        jaxexport("policy", "check", "--stable-targets", "lapak_*"),
        "lapak_*: expected a name or pattern of custom calls",
    )


def test_an_uncalled_target_outranks_an_expired_entry(jaxexport, cwd):
    write_golden(GoldenStore(cwd / "golden"), manifest("t.a", "0.12.0.1"))
    days = "added: 2026-10-01, expires: 2026-11-01"
    (cwd / "export_compat.yaml").write_text(
        f"quirks: [{{case: t.a, writer: 0.12.0.1, rtol: 0.1, reason: x, owner: me, issue: '#1', {days}}}]\n"
    )
    words = ("policy", "check", "--as-of", "2026-12-01")
    assert "1 expired" in jaxexport(*words, code=4).out
    assert "1 expired" in jaxexport(*words, "--stable-targets", "lapack_*", code=3).out
    assert "names; else 4 an entry has expired" in " ".join(jaxexport("policy", "check", "--help").out.split())


def test_check_names_deployment_targets_that_have_ended(jaxexport, cwd):
    (cwd / "export_compat.yaml").write_text("deployed: [{name: serving, jaxlib: 0.9.2, until: 2026-11-30}]")
    assert "1 deployment target (serving: ended)" in jaxexport("policy", "check", "--as-of", "2026-12-01").out
    assert "1 deployment target; 0 expired" in jaxexport("policy", "check", "--as-of", "2026-11-30").out
