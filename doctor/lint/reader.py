"""Reads a script's source into a :class:`Script`: what it imports, assigns and calls, and where."""

from __future__ import annotations

import ast
import re
from dataclasses import replace

from doctor.lint.script import Call, Scope, Script, _written
from doctor.lint.values import follow, items_of, options_of

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


# pip install torch: Jupyter takes it for %pip
_AUTOMAGIC = re.compile(
    r"(?:pip3?|conda|mamba) (?:install|uninstall|list|show|config)\b(?!\s*[=(.])|cd [\w./~]"
)


def without_magic(line: str) -> str:
    """Return a line of a notebook as Python: its magics (``%pip``, ``!nvidia-smi``, ``x = !ls``, ``model?``) do nothing."""
    if match := _GIVEN_BY_MAGIC.fullmatch(line):
        return f"{match[1]}None"
    bare = line.strip()
    if (
        bare.startswith(("%", "!", "?"))
        or _AUTOMAGIC.match(bare)
        or (bare.endswith("?") and not bare.startswith("#"))
    ):
        return line[: len(line) - len(line.lstrip())] + "pass"
    return line


def _without_magics(lines: list[str]) -> list[str]:
    """Return the lines as Python, those that carry on a magic (``!pip install a \\``) as empty ones."""
    kept: list[str] = []
    goes_on = False
    for line in lines:
        plain = "" if goes_on else without_magic(line)
        goes_on = line.rstrip().endswith("\\") and (goes_on or plain != line)
        kept.append(plain)
    return kept


def is_python(cell: str) -> bool:
    """Return whether a cell of a notebook can be read, once its magics do nothing."""
    try:
        _parsed(_without_magics(decodable(cell).split("\n")), "<cell>")
    except (SyntaxError, ValueError, RecursionError):
        return False
    return True


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
        lines = _without_magics(lines)
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
