"""A jaxpr as text and in figures: the same text from every run, in the same layout from every release of jax.

jax's own printer shows addresses of functions, orders of sets, options of NumPy, and whether equal inner jaxprs happen
to be a single object. The grammar is that of https://docs.jax.dev/en/latest/jaxpr.html; variables are named in the
order in which they are printed.
"""

import enum
import functools
import hashlib
import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Set
from itertools import count
from typing import Any

import numpy as np

from export_core.artifact.numerics import Factor, groups_of
from export_core.goldens.manifest import JaxprSummary

WIDTH = 80  # Characters of parameters that stay on the equation's line.

NOT_SHOWN = {"jvp_jaxpr_thunk", "jvp_jaxpr_fun", "fwd_jaxpr_thunk", "out_trees", "np_printoptions", "logging_record"}
"""Parameters that depend on the process: jax's own closures around rules that are not traced, and how NumPy prints."""

UNREMARKABLE = {"inline": "False Inline.FALSE Inline.AUTO Inline.DEFAULT", "keep_unused": "False"}
"""Parameters with the values that nearly every jit has, in the spelling of every release. They are not printed."""

_VARIABLE = re.compile(r"(?<![^\s(])[a-z]+(?=[ ,):]|$)")

# Words of the grammar, and numbers as Python prints them.
RESERVED = {"in", "let", "lambda", "inf", "nan"}

Show = Callable[[Any], list[str]]


def describe_jaxpr(closed_jaxpr: Any) -> tuple[str, JaxprSummary]:
    """Return the text of a jaxpr, which ends in a line break, and a summary with its counts.

    `closed_jaxpr` is the result of `jax.make_jaxpr(f)(...)` or `jax.jit(f).trace(...).jaxpr`, since 0.4.24. Releases of
    jax have different classes of jaxprs, so a jaxpr is recognised by its fields.
    """
    jaxprs = _JaxprTable(_open(closed_jaxpr))
    summary = JaxprSummary(
        primitives=dict(sorted(jaxprs.primitives().items())),
        constants=tuple(var.aval.str_short() for jaxpr in jaxprs.distinct for var in jaxpr.constvars),
        effects=tuple(sorted({value_text(effect) for effect in closed_jaxpr.effects})),
    )
    return _print(jaxprs), summary


class _JaxprTable:
    """A jaxpr and its inner jaxprs by key, a hash of their text.

    Equal jaxprs share an entry, even if they are two objects.
    """

    def __init__(self, top: Any) -> None:
        self.top = top
        self.distinct: list[Any] = []  # callees first
        self.uses: Counter[str] = Counter()
        self.names: dict[str, str] = {}
        self._keys: dict[int, str] = {}
        self._counts: dict[str, Counter[str]] = {}
        self._alive: list[Any] = []  # keys are looked up by id(), which another object may get once its owner is gone
        self.key(top)

    def key(self, jaxpr: Any) -> str:
        """Return the key of a jaxpr.

        The first call for a jaxpr adds its inner jaxprs and then the jaxpr itself to the table, so that each is visited
        once.
        """
        known = self._keys.get(id(jaxpr))
        if known is not None:
            return known
        bound = [_bound(equation) for equation in jaxpr.eqns]
        inner = [(callee, params) for _, params in bound for callee in inner_jaxprs(params)]
        keys = [self.key(callee) for callee, _ in inner]
        # Its own text with the keys of inner jaxprs in place of their texts: those may be exponentially long together.
        lines = _lines(jaxpr, _names(), lambda callee: [self._keys[id(callee)]])
        key = hashlib.sha256("\n".join(lines).encode()).hexdigest()
        # By hash, since jax may trace one function twice into equal jaxprs, which one run shares and the next does not.
        self._keys[id(jaxpr)] = key
        self._alive.append(jaxpr)
        if key not in self._counts:
            self.distinct.append(jaxpr)
            self._counts[key] = Counter(primitive for primitive, _ in bound)
            # Sums of sums keep the count linear in a call graph that doubles at each level.
            for callee_key, (_, params) in zip(keys, inner, strict=True):
                self._counts[key] += self._counts[callee_key]
                self.uses[callee_key] += 1
                self.names.setdefault(callee_key, str(params.get("name") or "jaxpr").strip("<>"))
        return key

    def primitives(self) -> Counter[str]:
        """Return how many times each primitive is bound, by the primitive's name.

        An inner jaxpr counts once for each place that uses it.
        """
        return self._counts[self.key(self.top)]


def _print(jaxprs: _JaxprTable) -> str:
    """Return the whole text of a jaxpr. Inner jaxprs that are used more than once come first, each with a name."""
    fresh = _names(RESERVED | set(jaxprs.primitives()))
    shared: dict[str, str] = {}
    taken: Counter[str] = Counter()

    def show(jaxpr: Any) -> list[str]:
        name = shared.get(jaxprs.key(jaxpr))
        return [name] if name else _lines(jaxpr, fresh, show)

    lines: list[str] = []
    for jaxpr in jaxprs.distinct:
        key = jaxprs.key(jaxpr)
        # A jaxpr of one equation is printed in place: a name would not make the text shorter.
        if jaxprs.uses[key] > 1 and len(jaxpr.eqns) > 1:
            name = jaxprs.names[key]
            first, *others = _lines(jaxpr, fresh, show)
            shared[key] = f"{name}{taken[name] or ''}"
            taken[name] += 1
            lines += [f"let {shared[key]} = {first}", *others]
            lines[-1] += " in"
    return "\n".join([*lines, *_lines(jaxprs.top, fresh, show)]) + "\n"


def _lines(jaxpr: Any, fresh: Iterator[str], show: Show) -> list[str]:
    """Return the lines of one jaxpr.

    `fresh` yields the names of its variables, and `show` returns the lines of an inner jaxpr.
    """
    names: dict[int, str] = {}
    used = {id(atom) for equation in jaxpr.eqns for atom in equation.invars} | {id(atom) for atom in jaxpr.outvars}

    def binders(variables: Any, *, drop: bool = False) -> str:
        for var in variables:
            names[id(var)] = "_" if drop and id(var) not in used else next(fresh)
        return " ".join(f"{names[id(var)]}:{var.aval.str_short(short_dtypes=True)}" for var in variables)

    def atom(operand: Any) -> str:
        if hasattr(operand, "val"):  # a literal; its class has moved between releases
            return f"{array_text(operand.val)}:{operand.aval.str_short(short_dtypes=True)}"
        return names[id(operand)]

    constants, arguments = binders(jaxpr.constvars), binders(jaxpr.invars)
    head = f"{{ lambda{' ' * bool(constants)}{constants} ;{' ' * bool(arguments)}{arguments}. let"
    body: list[str] = []
    for equation in jaxpr.eqns:
        operands = "".join(f" {atom(operand)}" for operand in equation.invars)
        results = binders(equation.outvars, drop=True)
        primitive, params = _bound(equation)
        body += _equation(f"{results} = " if results else "", primitive, _params(params, show), operands)
    outs = ", ".join(map(atom, jaxpr.outvars)) + "," * (len(jaxpr.outvars) == 1)
    if len(body) == 1 and _width(body[0]) <= WIDTH:
        return [f"{head} {body[0]} in ({outs}) }}"]
    if not body:
        return [f"{head} in ({outs}) }}"]
    return [head, *(f"    {line}" for line in body), f"  in ({outs}) }}"]


def _bound(equation: Any) -> tuple[str, Mapping[str, Any]]:
    """Return the name and the parameters of the primitive that an equation binds."""
    # Since 0.10, some (custom_root's) are objects in the parameter `_prim` of another, which would print as an address.
    primitive = equation.params.get("_prim")
    if not hasattr(primitive, "pp_params"):
        return equation.primitive.name, equation.params
    params = primitive.pp_params().items()
    return type(primitive).__name__, {name: getattr(value, "jaxpr", value) for name, value in params}


def _equation(results: str, primitive: str, params: list[list[str]], operands: str) -> list[str]:
    if not params:
        return [f"{results}{primitive}{operands}"]
    flat = " ".join(line for lines in params for line in lines)
    if all(len(lines) == 1 for lines in params) and _width(flat) <= WIDTH:
        return [f"{results}{primitive}[{flat}]{operands}"]
    return [f"{results}{primitive}[", *(f"  {line}" for lines in params for line in lines), f"]{operands}"]


def _width(line: str) -> int:
    """Return the length of a line in which each variable counts as one letter.

    This makes the layout independent of the names of variables.
    """
    return len(_VARIABLE.sub("a", line))


def _params(params: Mapping[str, Any], show: Show) -> list[list[str]]:
    """Return the lines of each parameter to print: `name` comes first, and parameters that contain jaxprs come last."""
    shown = {name: value for name, value in params.items() if name not in NOT_SHOWN and not is_unspecified(value)}
    printed = []
    for name in sorted(shown, key=lambda name: (bool(inner_jaxprs(shown[name])), name != "name", name)):
        first, *others = _value(shown[name], show)
        if name not in UNREMARKABLE or first not in UNREMARKABLE[name].split():
            printed.append([f"{name}={first}", *others])
    return printed


def _value(value: Any, show: Show) -> list[str]:
    """Return the lines of a parameter's value. A value that contains jaxprs has a line or more for each item."""
    if _is_jaxpr(value):
        return show(_open(value))
    if not inner_jaxprs(value):
        return [value_text(value)]
    if isinstance(value, Mapping):
        start, parts = "{", [(f"{value_text(key)}: ", part) for key, part in _items(value)]
    elif hasattr(value, "_fields"):
        start, parts = f"{type(value).__name__}(", [(f"{k}=", v) for k, v in zip(value._fields, value, strict=True)]
    else:
        start, parts = "(", [("", part) for part in value]
    lines = [start]
    for name, part in parts:
        first, *others = _value(part, show)
        lines += [f"  {name}{first}", *(f"  {line}" for line in others)]
    return [*lines, "}" if start == "{" else ")"]


def inner_jaxprs(value: Any) -> list[Any]:
    """Return the jaxprs in a parameter, or in a mapping of parameters, in the order in which they are printed."""
    if _is_jaxpr(value):
        return [_open(value)]
    if isinstance(value, Mapping):
        return [jaxpr for _, part in _items(value) for jaxpr in inner_jaxprs(part)]
    if isinstance(value, (tuple, list)):
        return [jaxpr for part in value for jaxpr in inner_jaxprs(part)]
    return []


def _items(value: Mapping[Any, Any]) -> list[tuple[Any, Any]]:
    return sorted(value.items(), key=lambda item: str(item[0]))  # keys of one mapping may be of several types


def _is_jaxpr(value: Any) -> bool:
    # A closed jaxpr has eqns too, and in place of invars the jaxpr inside.
    return hasattr(value, "eqns") and (hasattr(value, "invars") or hasattr(value, "jaxpr"))


def _open(value: Any) -> Any:
    """Return the jaxpr inside a closed jaxpr; an open jaxpr is returned unchanged."""
    return getattr(value, "jaxpr", value)


def _names(skipped: set[str] | frozenset[str] = frozenset()) -> Iterator[str]:
    """Yield names of variables: a, b, …, z, ba, bb, … as jax counts, without the names in `skipped`."""
    for number in count():
        name, rest = chr(97 + number % 26), number // 26
        while rest:
            name, rest = chr(97 + rest % 26) + name, rest // 26
        if name not in skipped:
            yield name


LONGEST = 400
"""The most characters of a value that are printed.

A longer one ends in its length and hash, so that a change still shows.
"""

MOST_ELEMENTS = 8  # Elements of an array that are printed. A larger array is shown by its type and a hash of its bytes.

# What texts of objects have that differs between processes or machines: "<f.g.Name object at 0x7f…>", " at 0x7f…",
# a source file with its line, and the order of a set, which follows the hashes of its elements.
_OBJECT = re.compile(r"<(?:[\w.]+\.)?(\w+) object at 0x[0-9a-fA-F]+>")
_ADDRESS = re.compile(r" at 0x[0-9a-fA-F]+")
_PLACE = re.compile(r"""[^\s'"<>()\[\],=]+\.pyi?\b(?::\d+)*(?:, line \d+)?""")
_PLAIN_SET = re.compile(r"\{([^{}:=]*,[^{}:=]*)\}")
_WORD = re.compile(r"[^\s\[\](){},='\"]+")


def value_text(value: Any) -> str:
    """Return a line of text for any value without jaxprs in it.

    The text is the same in every process, since it has no addresses, no paths, and no order that depends on hashes.
    """
    text = _text(value)
    if len(text) > LONGEST:
        return f"{text[:LONGEST]}… ({len(text)} characters, SHA-256 {_hash(text.encode())})"
    return text


def is_unspecified(value: Any) -> bool:
    """Return whether a parameter's value says nothing, so that it is not printed.

    Such values are None, "unspecified", an empty mesh, an empty container, and a container of only such values and
    False.
    """
    if isinstance(value, (tuple, list, Mapping, Set)):
        parts = value.values() if isinstance(value, Mapping) else value
        return all(part is False or is_unspecified(part) for part in parts)
    if value is None or type(value).__name__ in ("UnspecifiedValue", "AUTO"):
        return True
    return type(value).__name__.endswith("Mesh") and bool(getattr(value, "empty", False))


def array_text(value: Any) -> str:
    """Return a number as ``2.0``, a small array as a list, a larger array by its hash, and PRNG keys by their type."""
    try:
        array = np.asarray(value)
    except TypeError:
        return f"{value.dtype}{list(value.shape)}"  # NumPy has no PRNG keys
    if array.ndim == 0:
        return str(array.item())
    kind = f"{array.dtype}[{','.join(map(str, array.shape))}]"
    if array.size <= MOST_ELEMENTS and array.dtype != object:
        return f"{array.tolist()}:{kind}"
    return f"{kind} SHA-256 {_hash(array.tobytes())}"


def _text(value: Any) -> str:
    if isinstance(value, enum.Enum):  # before the numbers: an IntEnum is a number too, and its name is clearer
        return f"{type(value).__name__}.{value.name}"
    if value is None or isinstance(value, (bool, int, float, complex, bytes)):
        return repr(value)
    if isinstance(value, str):
        return value if _WORD.fullmatch(value) and not _PLACE.search(value) else repr(_without_places(value))
    if isinstance(value, (tuple, list, Mapping, Set)):
        return _container(value)
    if isinstance(value, np.dtype):
        return value.name
    if isinstance(value, functools.partial):
        bound = [*map(_text, value.args), *(f"{name}={_text(part)}" for name, part in value.keywords.items())]
        return f"partial({', '.join([_text(value.func), *bound])})"
    if isinstance(name := getattr(value, "__name__", None), str):
        return name
    if hasattr(value, "__array__") and hasattr(value, "dtype"):
        return array_text(value)
    return _without_places(str(value))


def _container(value: Any) -> str:
    if isinstance(value, Mapping):
        return "{" + ", ".join(sorted(f"{_text(key)}: {_text(part)}" for key, part in value.items())) + "}"
    if isinstance(value, Set):
        return "{" + ", ".join(sorted(map(_text, value))) + "}"  # as texts: the elements may have no order
    if hasattr(value, "_fields") and "__str__" in vars(type(value)):
        return _without_places(str(value))
    if hasattr(value, "_fields"):
        named = (f"{name}={_text(part)}" for name, part in zip(value._fields, value, strict=True))
        return f"{type(value).__name__}({', '.join(named)})"
    parts = ", ".join(map(_text, value))
    if isinstance(value, list):
        return f"[{parts}]"
    return f"({parts},)" if len(value) == 1 else f"({parts})"


def _without_places(text: str) -> str:
    """Return the text of an object without addresses and paths, which differ between processes."""
    text = _PLACE.sub("<file>", _ADDRESS.sub("", _OBJECT.sub(r"\1", text)))
    text = _PLAIN_SET.sub(lambda match: "{" + ", ".join(sorted(re.split(r",\s*", match[1]))) + "}", text)
    return " ".join(text.split())


def _hash(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()[:12]


_FACTORS = {"eigh": (1, 0), "svd": (1, 0, 2), "schur": (0, 1), **dict.fromkeys(("qr", "lu", "eig"), (0, 1, 2))}
"""The numbers of the factors that the results of a primitive of `jax.lax.linalg` are, in order, by the primitive's
name, which is also that of the comparator."""

_CALLS = frozenset(
    (
        *("jit", "pjit", "closed_call", "core_call", "checkpoint", "remat", "remat2"),
        *("custom_jvp_call", "custom_jvp_call_jaxpr", "custom_vjp_call", "custom_vjp_call_jaxpr"),
    )
)
"""Primitives that call the jaxpr in their parameters with their arguments, by all names in releases since 0.4.24."""
_SAME = frozenset(("copy", "copy_p", "optimization_barrier", "sharding_constraint", "reshard"))
"""Primitives that return each operand unchanged."""


def factored_results(closed_jaxpr: Any) -> tuple[tuple[str, tuple[int, ...]], ...]:
    """Return the comparator of each factorization that a function returns, and the indexes of its factors, in order.

    The factorizations are found by the primitives in the function's closed jaxpr, which are the same on every platform,
    even where jax lowers a factorization to other operations (QDWH).
    """
    jaxpr = getattr(closed_jaxpr, "jaxpr", closed_jaxpr)
    makers = functools.cache(_makers)  # cached by jaxpr, each of which lives as long as this function
    return groups_of(_factor(jaxpr, var, makers) for var in jaxpr.outvars)


def _makers(jaxpr: Any) -> dict[int, tuple[Any, int]]:
    """Return, by the id of each variable, the equation that makes it and the index of this variable among the results.

    For an argument of the jaxpr, the equation is None, and the index is that of the argument.
    """
    made = {id(var): (None, number) for number, var in enumerate(jaxpr.invars)}
    return made | {id(var): (eqn, number) for eqn in jaxpr.eqns for number, var in enumerate(eqn.outvars)}


def _factor(jaxpr: Any, var: Any, makers: Callable[[Any], dict[int, tuple[Any, int]]]) -> Factor | None:
    """Return which factor a variable of a jaxpr is, such as L of an LU factorization; None if it is not a factor.

    `makers` returns the equations that make the variables of a jaxpr, as `_makers` does.
    """
    calls: list[tuple[Any, Any]] = []
    while made := makers(jaxpr).get(id(var)):  # a constant has no maker
        equation, number = made
        if equation is None:
            if not calls:  # an argument of the function itself
                return None
            jaxpr, call = calls.pop()
            var = call.invars[number]
            continue
        name, inner = equation.primitive.name, inner_jaxprs(equation.params)
        if (roles := _FACTORS.get(name)) is not None:
            # By the calls around it: an inner jaxpr that is called twice has two factorizations.
            place = (*(id(call) for _, call in calls), id(equation))
            return Factor(place, name, roles[number]) if number < len(roles) else None
        if name in _SAME and len(equation.invars) == len(equation.outvars):
            var = equation.invars[number]
        elif name in _CALLS and len(inner) == 1 and len(inner[0].invars) == len(equation.invars):
            calls.append((jaxpr, equation))
            jaxpr = inner[0]
            var = jaxpr.outvars[number]
        else:
            return None
    return None
