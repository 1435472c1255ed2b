"""Documented changes of XLA, whose cells are not false alarms: the programs, releases and reasons of each change."""

from __future__ import annotations

from dataclasses import dataclass

from packaging.version import Version


@dataclass(frozen=True)
class Change:
    """A change of the numbers of some programs, after the release `last_before` and at the latest in `first_after`."""

    programs: tuple[str, ...]
    last_before: str
    first_after: str
    reason: str

    def covers(self, program: str, writer: str, reader: str) -> bool:
        """Return whether this change is of the program, and lies between the writer's and the reader's release."""
        older, newer = sorted(map(Version, (writer, reader)))
        between = older <= Version(self.last_before) and newer >= Version(self.first_after)
        return program in self.programs and between


CHANGES = (
    Change(
        programs=("bf16_rounded_product", "bf16_network", "bf16_gradient"),
        last_before="0.11.0",
        first_after="0.11.2",
        reason=(
            "a product of bfloat16 numbers that the program rounds to bfloat16 and then makes float32 keeps the digits "
            "of its sum until 0.11.0, and is rounded since 0.11.2"
        ),
    ),
    Change(
        programs=(
            *("beside_float8", "float8_out", "float8_products", "float8_hidden"),
            *("activation_copied_in_float8", "float8_activations", "rows_scaled_with_codes_in_four_bits"),
        ),
        last_before="0.7.0",
        first_after="0.7.1",
        reason=(
            "a number that becomes a float of 8 bits or fewer is rounded to float16 first until 0.7.0, partly until "
            "0.7.2, and once since 0.8.0 (findings/float8_rounded_twice.sh)"
        ),
    ),
)


def change_of(program: str, writer: str, reader: str) -> Change | None:
    """Return the documented change that a cell shows, if there is one."""
    return next((change for change in CHANGES if change.covers(program, writer, reader)), None)
