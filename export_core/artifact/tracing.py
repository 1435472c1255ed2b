"""The search through a module from its values back to the operations that make them."""

from functools import cached_property
from typing import NamedTuple

from export_core.artifact.bytecode.listing import Line, listing
from export_core.artifact.bytecode.module import Module

# Operations and calls that are followed from all results to what makes them: a damaged module may call in circles.
MOST_STEPS = 100_000
BODY = 2  # how deep the operations of a function's body are: below the module and the function


class Body(NamedTuple):
    """The operations of a function.

    Its values are numbered: arguments first, then the results of each operation.
    """

    arguments: int
    makers: list[tuple[Line, int]]
    """For each value that is no argument, the operation that makes it, and which of its results it is."""
    returned: tuple[int, ...]


class Value(NamedTuple):
    """A value in the body of a function, with the result of the call that led there; None for main."""

    body: Body
    number: int
    caller: "Value | None" = None

    @property
    def is_argument(self) -> bool:
        """Whether it is an argument of its function."""
        return self.number < self.body.arguments

    @property
    def made_by(self) -> Line:
        """The operation that makes it, where it is no argument."""
        return self.body.makers[self.number - self.body.arguments][0]

    @property
    def result(self) -> int:
        """Which result of that operation it is."""
        return self.body.makers[self.number - self.body.arguments][1]

    @property
    def operands(self) -> "list[Value]":
        """The values that the operation takes."""
        return [self._replace(number=number) for number in self.made_by.values]

    @property
    def target(self) -> str:
        """The target of the custom call that makes it; empty where another operation does."""
        return dict(self.made_by.attributes).get("call_target_name", "")[1:-1]

    @property
    def key(self) -> tuple[int, ...]:
        """A key for the operation that makes it: the calls that lead there."""
        path: list[int] = []
        value: Value | None = self
        while value is not None:
            path.append(value.number - value.result)
            value = value.caller
        return tuple(path)


class Trace:
    """The search from values to what makes them, within `MOST_STEPS` steps.

    Its methods raise `ArtifactError` where the module cannot be read, and `LookupError` where it lacks a function or a
    value that it names.
    """

    def __init__(self, module: Module) -> None:
        self._main = module.main
        self._functions = listing(module)
        self._arguments = {function.name: len(function.inputs) for function in module.functions}
        self._bodies: dict[str, Body] = {}
        self._steps = iter(range(MOST_STEPS))

    @cached_property
    def outputs(self) -> list[Value]:
        """The outputs of main, without tokens."""
        if self._main is None:
            return []
        body = self.body("main")
        outputs = zip(body.returned, self._main.outputs, strict=False)
        return [Value(body, number) for number, kind in outputs if "token" not in kind]

    def body(self, name: str) -> Body:
        """Return the operations of a function, by its name."""
        if name not in self._bodies:
            makers: list[tuple[Line, int]] = []
            returned: tuple[int, ...] = ()
            for line in self._functions[name]:
                if line.depth == BODY and line.name != "arguments":  # what is inside of its regions is left out
                    makers += [(line, result) for result in range(len(line.types))]
                    returned = line.values if line.name == "return" else returned
            self._bodies[name] = Body(self._arguments[name], makers, returned)
        return self._bodies[name]

    def past_calls(self, value: Value) -> Value | None:
        """Follow a value into the function where an operation makes it.

        Returns: None for an argument of main.
        """
        for _ in self._steps:
            if value.is_argument:
                if value.caller is None:
                    return None
                call = value.caller
                value = Value(call.body, call.made_by.values[value.number], call.caller)
            elif value.made_by.name == "call":
                body = self.body(value.made_by.calls[0])
                value = Value(body, body.returned[value.result], value)
            else:
                return value
        return None
