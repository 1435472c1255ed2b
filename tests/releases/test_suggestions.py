"""Suggestions name only releases that can run, and both platforms that a GPU can be."""

import pytest

from export_core.base.tolerances import similar_platform
from export_core.readers.errors import PlacementError
from export_core.readers.placement import parse_platform
from export_core.releases import ReleaseError, load_calendar

CALENDAR = load_calendar()


@pytest.mark.parametrize(
    ("text", "hint"),
    [
        ("0.13", ""),
        ("0.99.0", ""),
        ("0.12", " Did you mean '0.12.0'?"),
        ("0.9.3", " Did you mean '0.9.2'?"),
        ("0.8.9", " Did you mean '0.8."),
        ("0.4.19.1", " Did you mean '0.4."),
    ],
)
def test_only_a_release_of_that_line_that_can_run_is_named(text, hint):
    with pytest.raises(ReleaseError) as refused:
        CALENDAR.built(text)
    assert ("Did you mean" in str(refused.value)) == bool(hint)
    assert hint in str(refused.value)
    if hint:
        named = str(refused.value).partition("Did you mean '")[2].partition("'")[0]
        assert named in CALENDAR.versions(), "it can be installed, with a jax"


@pytest.mark.parametrize("text", ["0.4.1", "0.3.25", "0.4.13.1"])
def test_one_before_the_calendar_is_told_where_that_begins(text):
    with pytest.raises(ReleaseError) as refused:
        CALENDAR.as_of(CALENDAR.built("0.9.2")).built(text)
    assert str(refused.value) == (
        f"jaxlib {text} is not in the release calendar as of 2026-03-18. It is older than all releases there, the "
        "oldest of which is 0.4.18, built 2023-10-06. `jaxexport releases list` shows all."
    )


@pytest.mark.parametrize("name", ["gpu", "GPU"])
def test_a_gpu_is_cuda_or_rocm(name):
    assert similar_platform(name) == " Did you mean 'cuda' or 'rocm'?"
    with pytest.raises(PlacementError, match=r"found 'gpu'\. Did you mean 'cuda' or 'rocm'\?"):
        parse_platform("gpu")
