"""Real changes of XLA that readers show, which are no false alarms: the programs, the releases and the reason."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Change:
    """Programs whose numbers changed between a writer and a reader, and why."""

    programs: tuple[str, ...]
    writers: tuple[str, ...]
    readers: tuple[str, ...]
    reason: str

    def covers(self, program: str, writer: str, reader: str) -> bool:
        """Whether a cell is one of these."""
        return program in self.programs and writer in self.writers and reader in self.readers


CHANGES = (
    Change(
        programs=("bf16_product", "bf16_network", "bf16_gradient"),
        writers=("0.9.2",),
        readers=("0.11.2", "0.12.0.1"),
        reason="products of bfloat16 are accumulated otherwise since 0.11: 0.9.2 rounds no partial sum, 0.11.2 does",
    ),
)


def change_of(program: str, writer: str, reader: str) -> Change | None:
    """The documented change that a cell shows, if there is one."""
    return next((change for change in CHANGES if change.covers(program, writer, reader)), None)
