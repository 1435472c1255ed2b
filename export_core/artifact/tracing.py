"""The search in a StableHLO module from its values back to the operations that make them."""

from functools import cached_property
from typing import NamedTuple

from export_core.artifact.bytecode.listing import Line, listing
from export_core.artifact.bytecode.module import Module

# Operations and calls that are followed from all results to what makes them: a damaged module may call in circles.
MOST_STEPS = 100_000
BODY = 2  # how deep the operations of a function's body are: below the module and the function


class Body(NamedTuple):
    """The operations of a function.

    The values of a function are numbered: first its arguments, then the results of each operation.
    """

    arguments: int  # The number of arguments.
    makers: list[tuple[Line, int]]
    """For each value that is not an argument, the operation that makes the value, and the number of that result."""
    returned: tuple[int, ...]  # The numbers of the values that the function returns.


class Value(NamedTuple):
    """A value in the body of a function."""

    body: Body
    number: int  # The number of the value in the body.
    caller: "Value | None" = None  # The result of the call through which the function was reached; None in main.

    @property
    def is_argument(self) -> bool:
        """Whether the value is an argument of its function."""
        return self.number < self.body.arguments

    @property
    def made_by(self) -> Line:
        """The operation that makes the value. The value must not be an argument of its function."""
        return self.body.makers[self.number - self.body.arguments][0]

    @property
    def result(self) -> int:
        """The index of the value among the results of the operation that makes it."""
        return self.body.makers[self.number - self.body.arguments][1]

    @property
    def operands(self) -> "list[Value]":
        """The values that are the operands of the operation that makes this value."""
        return [self._replace(number=number) for number in self.made_by.values]

    @property
    def target(self) -> str:
        """The target of the custom call that makes the value; empty if another operation makes it."""
        return dict(self.made_by.attributes).get("call_target_name", "")[1:-1]

    @property
    def key(self) -> tuple[int, ...]:
        """A key of the operation that makes the value. It differs between calls of the function with the operation."""
        path: list[int] = []
        value: Value | None = self
        while value is not None:
            path.append(value.number - value.result)
            value = value.caller
        return tuple(path)


class Trace:
    """The search in one module from values back to the operations that make them, in at most `MOST_STEPS` steps.

    Its methods raise `ArtifactError` if the module cannot be read. They raise `LookupError` if the module refers to a
    function or a value that it lacks.
    """

    def __init__(self, module: Module) -> None:
        self._main = module.main
        self._functions = listing(module)
        self._arguments = {function.name: len(function.inputs) for function in module.functions}
        self._bodies: dict[str, Body] = {}
        self._steps = iter(range(MOST_STEPS))

    @cached_property
    def outputs(self) -> list[Value]:
        """The values that main returns, in order, without tokens; empty if the module has no main."""
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
        """Follow a value back through calls of functions, to the value that another operation than a call makes.

        None if the search ends at an argument of main, or after `MOST_STEPS` steps.
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
