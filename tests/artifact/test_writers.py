import pytest
from artifacts import changed
from stored_artifacts import DATA, FILES, NAMES

from export_core.artifact import read, read_bytes
from export_core.artifact.main_check import check_main
from export_core.artifact.writers import contradiction, find_writer, writers
from export_core.policy.load_check import check
from export_core.policy.terms import Terms, promised_days
from export_core.releases.calendar_entries import shipped_entries

RELEASES = shipped_entries()


@pytest.mark.parametrize("path", FILES, ids=NAMES)
def test_the_real_writer_is_among_few_candidates(path):
    found = writers(read(path), RELEASES)
    assert path.parent.name in found
    assert len(found) <= (13 if path.parent.name == "0.4.30" else 4)


def test_writers_of_equal_modules_are_distinguished_by_envelope():
    assert writers(read(DATA / "0.8.1" / "platforms.jaxexport"), RELEASES) == ("0.8.1",)


def test_the_envelope_format_depends_on_jax_and_not_on_jaxlib():
    """jax 0.4.24 works on jaxlib 0.4.19, whose own jax wrote another format."""
    assert "0.4.19" in writers(read(DATA / "0.4.30" / "mlp.jaxexport"), RELEASES)
    assert "0.4.18" not in writers(read(DATA / "0.4.30" / "mlp.jaxexport"), RELEASES)


def test_a_bare_modules_writer_may_be_any_release_since_its_stablehlo():
    """0.9.2 writes for the StableHLO of 0.9.0, so 0.9.0 and every later release may be its writer."""
    module = read(DATA / "0.9.2" / "mlp.jaxexport").module
    found = writers(read_bytes(module.serialized()), RELEASES)
    assert module.stablehlo_version == "1.13.7"
    assert {"0.9.0", "0.9.2", "0.12.0.1"} < {*found}
    assert "0.8.1" not in found


@pytest.mark.parametrize("convention", [5, 8, 11])
def test_a_convention_that_no_jax_writes_has_no_promise(convention, tmp_path):
    path = changed(tmp_path, "0.12.0.1/cholesky", calling_convention_version=convention)
    artifact, terms = read(path), Terms(shipped_entries())
    assert find_writer(read(DATA / "0.12.0.1" / "cholesky.jaxexport"), terms.releases).candidates
    writer = find_writer(artifact, terms.releases)
    assert (writer.candidates, promised_days(writer, terms)) == ((), None)
    assert check(path, "0.12.0.1").promised is None
    stablehlo = next(entry.stablehlo for entry in terms.releases if entry.jaxlib == "0.12.0.1")
    text = contradiction(artifact, "0.12.0.1", "0.12.0.1", stablehlo)
    assert text.startswith("expected a calling convention that jax 0.12.0.1 writes, found ")


def test_an_envelope_without_platforms_breaks_its_calling_convention(tmp_path):
    artifact = read(changed(tmp_path, "0.12.0.1/cholesky", platforms=()))
    assert check_main(artifact) == [
        "the envelope of @main names no platform, and each calling convention since 6 needs one."
    ]
