"""docs/how-to/change-a-custom-call.md shows the real files, and every day of the change."""

import re

import pytest

from studies.custom_calls.building import HERE

ROOT = HERE.parents[1]
PAGE = (ROOT / "docs" / "how-to" / "change-a-custom-call.md").read_text()
BLOCKS = re.findall(r"^```(\w+) title=\"(\S+)\"\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)
SHOWN = re.findall(r"^\$ python -m studies\.custom_calls\.judged (.*)\n((?:[^`].*\n|\n)+)", PAGE, re.MULTILINE)
DAYS = ("2026-02-03", "2026-02-04", "2026-02-25", "2026-02-28", "2026-08-28")


@pytest.mark.parametrize(("language", "path", "block"), BLOCKS, ids=[path for _, path, _ in BLOCKS])
def test_a_page_block_equals_its_file(language, path, block):
    assert block.strip() in (ROOT / path).read_text()


@pytest.mark.parametrize(
    "step",
    [
        "`ctx.is_forward_compat()`, true in exports only",
        "`jaxlib_version < FIRST_JAXLIB`, since jax also runs on an older jaxlib",
        "`_CUSTOM_CALL_TARGETS_GUARANTEED_STABLE` in `jax/_src/export/_export.py`",
        "Tests at D: ",
        "Tests at D + 21: ",
        "**minimum jaxlib** of jax, remove `jaxlib_version < FIRST_JAXLIB`",
        "the minimum jaxlib must have been raised",
        "`jaxlib_extension_version`",
    ],
)
def test_the_page_has_every_step_of_jaxs_process(step):
    assert step in " ".join(PAGE.split())


def test_the_pages_commands_show_each_day_and_a_broken_promise():
    days = [command.rpartition(" ")[2] for command, _ in SHOWN if "--as-of" in command]
    assert sorted(set(days)) == sorted(DAYS)
    assert any("BROKEN PROMISE" in shown for _, shown in SHOWN)
