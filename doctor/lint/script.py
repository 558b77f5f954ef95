"""A training script as lint sees it: its syntax tree with names resolved through its imports. Never run. Pure.

``Script.calls`` lists every call in source order with a dotted name: ``torch.optim.AdamW`` however it was imported, and
for methods the receiver's text (``model.cuda`` on ``self.net`` is ``self.net.cuda``).
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from functools import cached_property

from doctor.lint.values import follow, items_of, literal, options_of

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


_UNDECODABLE = re.compile("[\udc80-\udcff]")


def decodable(source: str) -> str:
    """Return ``source`` with a mark in place of each byte that could not be decoded (read with surrogateescape)."""
    return source if source.isascii() else _UNDECODABLE.sub("\ufffd", source)


def _parsed(lines: list[str], path: str) -> ast.Module:
    try:
        return ast.parse("\n".join(lines) + "\n", filename=path)
    except MemoryError:  # what the parser of some releases says of a hundred thousand brackets
        raise RecursionError("it is nested too deeply") from None


# files = !ls *.txt     out = %time f()
_GIVEN_BY_MAGIC = re.compile(r"(\s*[A-Za-z_][\w, ]*=\s*)[!%][\w(./~].*")


def without_magic(line: str) -> str:
    """Return a line of a notebook as Python: its magics (``%pip``, ``!nvidia-smi``, ``x = !ls``, ``model?``) do nothing."""
    if match := _GIVEN_BY_MAGIC.fullmatch(line):
        return f"{match[1]}None"
    bare = line.strip()
    if bare.startswith(("%", "!", "?")) or (bare.endswith("?") and not bare.startswith("#")):
        return line[: len(line) - len(line.lstrip())] + "pass"
    return line


def parse(source: str, path: str) -> Script:
    """Parse ``source``; where it does not parse, without the magics of a notebook (``%pip``, ``!nvidia-smi``).

    Raises:
        SyntaxError: it is not Python that this interpreter reads; the error names line and column.
        RecursionError: it is nested too deeply.
    """
    text = source.lstrip("\ufeff")
    lines = decodable(text).split("\n")
    try:
        tree = _parsed(lines, path)
    except SyntaxError:
        lines = [without_magic(line) for line in lines]
        tree = _parsed(lines, path)
    script = Script(tree, path, lines)
    if not text.isascii():
        script.undecodable = tuple(
            (number, match.start())
            for number, line in enumerate(text.split("\n"), 1)
            for match in _UNDECODABLE.finditer(line)
        )
    _Reader(script).visit(script.tree)
    script.calls = [_with_spread(script, call) for call in script.calls]
    script.options = dict(options_of(script.calls))
    return script


def _with_spread(script: Script, call: Call) -> Call:
    starred = [word.value for word in call.node.keywords if word.arg is None]
    if not starred:
        return call
    spread: dict[str, ast.expr] = {}
    hidden = False
    for node in starred:
        items = items_of(follow(script, node, call.scope))
        hidden = hidden or items is None
        spread |= items or {}
    return replace(call, spread=spread, hides_arguments=hidden)


class _Reader(ast.NodeVisitor):
    """Fills a Script in source order."""

    def __init__(self, script: Script) -> None:
        self.script = script
        self.scope: Scope = ()
        self.loops = 0
        self.guards = 0
        self.tries = 0
        self.block = 0
        self.blocks: tuple[int, ...] = ()

    # -- names ---------------------------------------------------------------------------------------------------
    def visit_Import(self, node: ast.Import) -> None:
        for alias in node.names:
            local = alias.asname or alias.name.partition(".")[0]
            self.script.imports[local] = alias.name if alias.asname else local
            self.script.import_lines.setdefault(alias.name, node.lineno)

    def visit_ImportFrom(self, node: ast.ImportFrom) -> None:
        if node.level:
            return
        for alias in node.names:
            origin = f"{node.module}.{alias.name}"
            self.script.imports[alias.asname or alias.name] = origin
            if self.guards or self.tries:
                self.script.guarded_origins.add(origin)
            self.script.import_lines.setdefault(origin, node.lineno)

    def visit_Assign(self, node: ast.Assign) -> None:
        for target in node.targets:
            self._assign(target, node.value, node.lineno)
        self.generic_visit(node)

    def visit_AnnAssign(self, node: ast.AnnAssign) -> None:
        if node.value is not None:
            self._assign(node.target, node.value, node.lineno)
        self.generic_visit(node)

    def visit_AugAssign(self, node: ast.AugAssign) -> None:
        self.script.augmented.append((self.scope, node))
        self.generic_visit(node)

    def _assign(self, target: ast.expr, value: ast.expr, line: int) -> None:
        if isinstance(target, ast.Name):
            self.script.assigned.setdefault((self.scope, target.id), []).append((line, value))
        elif isinstance(target, ast.Attribute):
            name = self.script.resolve(target)
            self.script.assigned.setdefault(((), name), []).append((line, value))
            self.script.attributes_given.setdefault(name, []).append((value, self.scope))
        elif isinstance(target, (ast.Tuple, ast.List)) and isinstance(value, (ast.Tuple, ast.List)):
            if len(target.elts) == len(value.elts):
                for one, given in zip(target.elts, value.elts, strict=True):
                    self._assign(one, given, line)
        elif isinstance(target, (ast.Tuple, ast.List)):
            # model, opt = accelerator.prepare(model, opt): what each of them is now, only the call knows
            for one in target.elts:
                self._assign(one, value, line)

    # -- structure -----------------------------------------------------------------------------------------------
    def _inside(self, node: ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef) -> None:
        for outside in (*node.decorator_list, *(node.bases if isinstance(node, ast.ClassDef) else ())):
            self.visit(outside)
        kept = self.scope, self.loops, self.guards
        self.scope, self.loops, self.guards = (*self.scope, node.name), 0, 0
        if isinstance(node, ast.ClassDef):
            self.script.bases[node.name] = tuple(filter(None, map(self.script.resolve, node.bases)))
            self.script.classes[node.name] = node
        else:
            self.script.functions[self.scope] = node
        self._statements(node.body)
        self.scope, self.loops, self.guards = kept

    visit_FunctionDef = visit_AsyncFunctionDef = visit_ClassDef = _inside  # noqa: N815

    def visit_Module(self, node: ast.Module) -> None:
        self._statements(node.body)

    def _statements(self, body: list[ast.stmt]) -> None:
        kept = self.block, self.blocks
        self.block, self.blocks = id(body), (*self.blocks, id(body))
        for statement in body:
            self.visit(statement)
        self.block, self.blocks = kept

    def visit_For(self, node: ast.For | ast.AsyncFor) -> None:
        self.visit(node.iter)
        self._loop(node.body, node.orelse)

    visit_AsyncFor = visit_For  # noqa: N815

    def visit_While(self, node: ast.While) -> None:
        self.visit(node.test)
        self._loop(node.body, node.orelse)

    def _loop(self, body: list[ast.stmt], orelse: list[ast.stmt]) -> None:
        self.loops += 1
        self._statements(body)
        self.loops -= 1
        self._statements(orelse)

    def visit_If(self, node: ast.If) -> None:
        self.visit(node.test)
        self.guards += 1
        self._statements(node.body)
        self._statements(node.orelse)
        self.guards -= 1

    def visit_With(self, node: ast.With | ast.AsyncWith) -> None:
        for item in node.items:
            self.visit(item)
        for statement in node.body:  # a with-block runs straight through: same block
            self.visit(statement)

    visit_AsyncWith = visit_With  # noqa: N815

    def visit_Try(self, node: ast.Try) -> None:
        self.tries += 1  # what is tried may fail and be met
        self._statements(node.body)
        self.tries -= 1
        for body in (*(handler.body for handler in node.handlers), node.orelse, node.finalbody):
            self._statements(body)

    def visit_Attribute(self, node: ast.Attribute) -> None:
        name = self.script.resolve(node)
        if name:
            self.script.attribute_lines.setdefault(name, node.lineno)
        self.generic_visit(node)

    def visit_Call(self, node: ast.Call) -> None:
        self.visit(node.func)
        for argument in (*node.args, *(word.value for word in node.keywords)):
            self.visit(argument)
        self.script.calls.append(
            Call(
                node, self.script.resolve(node.func) or _written(node.func), self.scope, self.block,
                len(self.script.calls), self.loops, self.guards > 0, self.blocks,
            )
        )  # fmt: skip
