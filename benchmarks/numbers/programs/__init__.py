"""The programs of the corpus, by name."""

from benchmarks.numbers.programs import algebra, chance, networks, precision, science, training
from benchmarks.numbers.programs.program import Program

PROGRAMS: dict[str, Program] = {
    program.name: program
    for part in (algebra, networks, training, precision, science, chance)
    for program in part.PROGRAMS
}
