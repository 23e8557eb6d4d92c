"""The environment: which names, functions, macros and rules an expression is compiled with.

An environment is immutable; `extended` and `with_variables` return new ones. `STANDARD` is plain CEL;
`kubernetes_environment` and `kyverno_environment` (see `presets`) are the ones that policies use.
"""

from __future__ import annotations

from collections.abc import Mapping

from pyverno.lang.cel.checking.checked import Checked
from pyverno.lang.cel.checking.checker import check
from pyverno.lang.cel.checking.literals import literal_issues
from pyverno.lang.cel.checking.scope import Constant, Names
from pyverno.lang.cel.declarations import NO_STRUCTS, Library, Overload, StructProvider, merge_functions
from pyverno.lang.cel.program import Program
from pyverno.lang.cel.runtime.plan import KUBERNETES_COSTS, CostRules
from pyverno.lang.cel.scalars import TypeValue
from pyverno.lang.cel.syntax.macros import STANDARD_MACROS, MacroTable
from pyverno.lang.cel.syntax.parser import parse
from pyverno.lang.cel.syntax.source import CompileError, Issue, Source
from pyverno.lang.cel.types import (
    BOOL,
    BYTES,
    DOUBLE,
    DURATION,
    DYN,
    INT,
    NULL,
    STRING,
    TIMESTAMP,
    UINT,
    Type,
    list_of,
    map_of,
    type_of,
)
from pyverno.lang.cel.values import Value
from pyverno.value import dataclass, field, replace

__all__ = ["Environment"]

_TYPE_NAMES: dict[str, Type] = {
    "bool": BOOL,
    "bytes": BYTES,
    "double": DOUBLE,
    "int": INT,
    "uint": UINT,
    "string": STRING,
    "list": list_of(DYN),
    "map": map_of(DYN, DYN),
    "null_type": NULL,
    "type": Type("type"),
    "google.protobuf.Timestamp": TIMESTAMP,
    "google.protobuf.Duration": DURATION,
}


@dataclass(frozen=True, slots=True, eq=False)
class Joined:
    """The content of a tuple of libraries: functions, macros, variables and constants by name."""

    libraries: tuple[Library, ...]
    functions: Mapping[str, tuple[Overload, ...]]
    macros: MacroTable
    variables: Mapping[str, Type]
    constants: Mapping[str, Constant]


def _join(libraries: tuple[Library, ...]) -> Joined:
    macros = dict(STANDARD_MACROS)
    variables: dict[str, Type] = {}
    constants = {name: Constant(type_of(type_), TypeValue(name)) for name, type_ in _TYPE_NAMES.items()}
    for library in libraries:
        macros.update(library.macros)
        for name, type_ in library.variables.items():
            variables.setdefault(name, type_)
        for type_ in library.types:
            constants[type_.name] = Constant(type_of(type_), TypeValue(type_.name))
    return Joined(libraries, merge_functions(libraries), macros, variables, constants)


@dataclass(frozen=True, slots=True, eq=False)
class Environment:
    """The names that an expression may use, and the rules of its checks and cost.

    `homogeneous` refuses list and map literals of mixed types; `literal_checks` adds Kubernetes' compile-time checks
    of duration, timestamp and regex literals, `format_checks` those of `format` before strings version 4;
    `strict_presence` makes it an error to ask a scalar or null for a field
    (`has(x.y)`, `x.?y`), as the specification's tests want and Kubernetes does not; `cost_limit` is the limit of one
    evaluation, in cel-go's cost units. `joined` is what the libraries bring, kept because to put it together takes
    longer than to compile an expression. Environments compare by identity.
    """

    libraries: tuple[Library, ...] = ()
    variables: Mapping[str, Type] = field(default_factory=dict)
    constants: Mapping[str, Constant] = field(default_factory=dict)
    structs: StructProvider = NO_STRUCTS
    container: str = ""
    homogeneous: bool = False
    literal_checks: bool = False
    format_checks: bool = False
    optional_syntax: bool = True
    strict_presence: bool = False
    cost_rules: CostRules = KUBERNETES_COSTS
    cost_limit: int = 1_000_000
    joined: Joined | None = field(default=None, repr=False)
    names: Names = field(init=False, repr=False)
    macros: MacroTable = field(init=False, repr=False)

    def __post_init__(self) -> None:
        joined = self.joined
        if joined is None or joined.libraries is not self.libraries:
            joined = _join(self.libraries)
            object.__setattr__(self, "joined", joined)
        names = Names(
            {**joined.variables, **self.variables},
            {**joined.constants, **self.constants},
            joined.functions,
            self.structs,
            self.container,
        )
        object.__setattr__(self, "names", names)
        object.__setattr__(self, "macros", joined.macros)

    @property
    def globals(self) -> Mapping[str, Value]:
        """The values that libraries bind to their own variables."""
        return {name: value for library in self.libraries for name, value in library.globals.items()}

    def extended(self, *libraries: Library) -> Environment:
        """Return an environment with more libraries."""
        return replace(self, libraries=(*self.libraries, *libraries))

    def with_variables(self, variables: Mapping[str, Type]) -> Environment:
        """Return an environment with more variables."""
        return replace(self, variables={**self.variables, **variables})

    def with_structs(self, structs: StructProvider) -> Environment:
        """Return an environment whose struct types come from another provider."""
        return replace(self, structs=structs)

    def check(self, text: str, *, expected: Type | tuple[Type, ...] | None = None, lenient: bool = False) -> Checked:
        """Parse and type-check an expression without making closures.

        `expected` is the type (or one of the types) that the result must have, exactly: a `dyn` result is refused, as
        Kubernetes refuses it. Raises CompileError.
        """
        source = Source(text)
        root = parse(source, self.macros, optionals=self.optional_syntax)
        checked = check(root, self.names, source, lenient=lenient)
        issues = literal_issues(
            checked, homogeneous=self.homogeneous, texts=self.literal_checks, formats=self.format_checks
        )
        if issues:
            raise CompileError(issues, source)
        if expected is not None:
            wanted = expected if isinstance(expected, tuple) else (expected,)
            if not any(checked.type == type_ for type_ in wanted):
                listed = " or ".join("null_type" if each == NULL else str(each) for each in wanted)
                message = f"output is expected to be {'either ' if len(wanted) > 1 else ''}of type {listed}"
                raise CompileError((Issue(0, message),), source)
        return checked

    def compile(self, text: str, *, expected: Type | tuple[Type, ...] | None = None, lenient: bool = False) -> Program:
        """Compile an expression to a Program; raises CompileError with every problem, in cel-go's layout.

        With `lenient` nothing is type-checked: what does not resolve fails when it runs.

        >>> from pyverno.lang.cel import STANDARD
        >>> STANDARD.compile("1 + 2").evaluate({})
        3
        """
        checked = self.check(text, expected=expected, lenient=lenient)
        return Program(text, checked, self)
