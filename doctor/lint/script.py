"""A training script as lint sees it: its syntax tree with names resolved through its imports. Never run. Pure.

``Script.calls`` lists every call in source order with a dotted name: ``torch.optim.AdamW`` however it was imported, and
for methods the receiver's text (``model.cuda`` on ``self.net`` is ``self.net.cuda``).
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property

from doctor.lint.values import follow, literal

Scope = tuple[str, ...]


@dataclass(frozen=True, eq=False)
class Call:
    """One call, with what a rule asks about it."""

    node: ast.Call
    name: str
    """Resolved dotted name; a method of an expression as written; empty for other callees."""
    scope: Scope
    """Names of the functions and classes around it, outermost first."""
    block: int
    """Identity of the innermost statement list it stands in."""
    order: int
    loops: int
    """How many loops are around it within its function."""
    guarded: bool
    """It stands under an ``if`` within its function."""
    blocks: tuple[int, ...] = ()
    """The statement lists around it, the outermost first."""
    spread: dict[str, ast.expr] = field(default_factory=dict)
    """What ``**options`` brings, where the dictionary is a literal."""
    hides_arguments: bool = False
    """``f(**options)`` with a dictionary that cannot be seen here."""

    @property
    def line(self) -> int:
        return self.node.lineno

    @property
    def method(self) -> str:
        return self.name.rpartition(".")[2]

    @property
    def receiver(self) -> str:
        return self.name.rpartition(".")[0]

    @cached_property
    def keywords(self) -> dict[str, ast.expr]:
        return self.spread | {word.arg: word.value for word in self.node.keywords if word.arg}

    @property
    def has_double_star(self) -> bool:
        """``f(**options)``: arguments that cannot be seen here."""
        return self.hides_arguments

    def argument(self, place: int, name: str) -> ast.expr | None:
        """Return the argument that stands at ``place`` or is called ``name``."""
        plain = self.node.args[: place + 1]
        given = plain[place] if len(plain) > place and not any(isinstance(one, ast.Starred) for one in plain) else None  # fmt: skip
        return given if given is not None else self.keywords.get(name)


@dataclass
class Script:
    """A parsed script. Build with :func:`parse`."""

    tree: ast.Module
    path: str
    lines: list[str]
    imports: dict[str, str] = field(default_factory=dict)
    """Local name -> dotted origin."""
    import_lines: dict[str, int] = field(default_factory=dict)
    guarded_origins: set[str] = field(default_factory=set)
    """Origins imported under a condition or in a try: the script knows that they may not be there."""
    """Dotted origin -> first line it was imported on."""
    calls: list[Call] = field(default_factory=list)
    assigned: dict[tuple[Scope, str], list[tuple[int, ast.expr]]] = field(default_factory=dict)
    """(scope, variable) -> the (line, value) pairs it was given."""
    augmented: list[tuple[Scope, ast.AugAssign]] = field(default_factory=list)
    """``x += y`` and its kin, with the functions around them."""
    attributes_given: dict[str, list[tuple[ast.expr, Scope]]] = field(default_factory=dict)
    """``self.rate`` -> the (value, scope) pairs it was given."""
    attribute_lines: dict[str, int] = field(default_factory=dict)
    """Dotted name of each attribute chain through an import -> the first line it stands on."""
    functions: dict[Scope, ast.FunctionDef | ast.AsyncFunctionDef] = field(default_factory=dict)
    bases: dict[str, tuple[str, ...]] = field(default_factory=dict)
    """Class of this script -> the dotted names of its bases."""
    classes: dict[str, ast.ClassDef] = field(default_factory=dict)
    options: dict[str, ast.expr] = field(default_factory=dict)
    """Command-line option -> its default."""
    undecodable: tuple[tuple[int, int], ...] = ()
    """(line, column) of each byte that the encoding of the script does not allow."""

    def resolve(self, node: ast.expr) -> str:
        """Return the dotted name of a name or attribute chain through the imports; empty for anything else."""
        if isinstance(node, ast.Name):
            return self.imports.get(node.id, node.id)
        if isinstance(node, ast.Attribute):
            head = self.resolve(node.value)
            return f"{head}.{node.attr}" if head else ""
        return ""

    def named(self, *names: str) -> Iterator[Call]:
        """Yield calls whose dotted name is one of ``names`` or ends with ``.name``'s last two parts resolved equal."""
        wanted = set(names)
        return (call for call in self.calls if call.name in wanted)

    def methods(self, *methods: str) -> Iterator[Call]:
        """Yield calls of an attribute with one of these names, whatever the receiver."""
        wanted = set(methods)
        return (call for call in self.calls if call.method in wanted)

    def value_of(self, node: ast.expr | None, scope: Scope = ()) -> ast.expr | None:
        """Follow a variable to the one value it was given, else return ``node`` itself."""
        return follow(self, node, scope)

    def constant(self, node: ast.expr | None, scope: Scope = ()) -> object:
        """Return the literal that ``node`` comes to (through variables and options), or None."""
        return literal(self, node, scope)

    def kind(self, name: str) -> str:
        """Return the dotted name of the library class that a class of this script stands for, else ``name``."""
        seen: set[str] = set()
        while name in self.bases and name not in seen:
            seen.add(name)
            name = next(iter(self.bases[name]), name)
        return name

    def kind_of(self, call: Call) -> str:
        """Return the last part of :meth:`kind` of what is called: ``Trainer`` for ``MyTrainer(...)``."""
        return self.kind(call.name).rpartition(".")[2]

    def is_local(self, call: Call) -> bool:
        """Return whether a class of this script is called."""
        return call.name in self.bases

    @cached_property
    def subscripts(self) -> tuple[ast.Subscript, ...]:
        return tuple(node for node in ast.walk(self.tree) if isinstance(node, ast.Subscript))

    @cached_property
    def names_given(self) -> dict[int, list[tuple[Scope, str]]]:
        """Identity of a value -> the (scope, variable) pairs that it was given to."""
        given: dict[int, list[tuple[Scope, str]]] = {}
        for place, values in self.assigned.items():
            for _, value in values:
                given.setdefault(id(value), []).append(place)
        return given

    @cached_property
    def methods_called(self) -> dict[str, set[str]]:
        """Receiver as written -> the methods that are called on it; under "" the names that are called."""
        called: dict[str, set[str]] = {}
        for call in self.calls:
            called.setdefault(call.receiver, set()).add(call.method)
            called.setdefault("", set()).add(call.name)
        return called

    @cached_property
    def parents(self) -> dict[int, ast.AST]:
        """Identity of a node -> the node it stands in."""
        return {id(child): node for node in ast.walk(self.tree) for child in ast.iter_child_nodes(node)}

    @cached_property
    def strings(self) -> set[str]:
        """Every text that stands in the script."""
        return {
            node.value
            for node in ast.walk(self.tree)
            if isinstance(node, ast.Constant) and isinstance(node.value, str)
        }

    def mentions(self, word: str) -> bool:
        """Return whether ``word`` is imported, or is part of a name, attribute or string of the script."""
        return word in self._words

    @cached_property
    def _words(self) -> set[str]:
        words: set[str] = set()
        for node in ast.walk(self.tree):
            if isinstance(node, ast.Name):
                words.update(_parts(node.id))
            elif isinstance(node, ast.arg):
                words.update(_parts(node.arg))
            elif isinstance(node, ast.Attribute):
                words.update(_parts(node.attr))
            elif isinstance(node, ast.Constant) and isinstance(node.value, str) and len(node.value) < 200:
                words.add(node.value)
        for origin in self.import_lines:
            words.update(origin.split("."))
        return words


def _written(function: ast.expr) -> str:
    """Return a method call's callee as written (``scaler.scale(loss).backward``); empty for other expressions."""
    return ast.unparse(function) if isinstance(function, ast.Attribute) else ""


def _parts(name: str) -> set[str]:
    return {name, *name.lower().split("_")}
