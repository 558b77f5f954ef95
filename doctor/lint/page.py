"""A script as it is rewritten: its concrete syntax (libcst) beside the tree that the rules read, joined by position. Pure."""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Callable, Iterator
from typing import Any, TypeVar

import libcst as cst
from libcst.metadata import MetadataWrapper, ParentNodeProvider, PositionProvider

from doctor.lint.script import Script

N = TypeVar("N", bound=cst.CSTNode)
Change = Callable[[Any], cst.CSTNode]
Span = tuple[int, int, int, int]


class Edits:
    """What is to be done to one page; carried out in one pass by :meth:`Page.applied`."""

    def __init__(self) -> None:
        self.changes: dict[cst.CSTNode, list[Change]] = defaultdict(list)
        self.before: dict[cst.CSTNode, list[cst.BaseStatement]] = defaultdict(list)
        self.after: dict[cst.CSTNode, list[cst.BaseStatement]] = defaultdict(list)
        self.removed: set[cst.CSTNode] = set()

    def change(self, node: cst.CSTNode, change: Change) -> None:
        """Replace ``node`` by what ``change`` makes of it, after the changes below it and earlier ones of its own."""
        self.changes[node].append(change)

    def put(self, node: cst.CSTNode, new: cst.CSTNode) -> None:
        self.change(node, lambda _: new)


class Page:
    """One script, to be rewritten.

    Raises:
        libcst.ParserSyntaxError: libcst cannot read it.
    """

    def __init__(self, source: str, script: Script) -> None:
        self.script = script
        wrapper = MetadataWrapper(cst.parse_module(source), unsafe_skip_copy=True)
        self.module = wrapper.module
        self.quote = "'" if source.count("'") > source.count('"') else '"'
        self.parents = wrapper.resolve(ParentNodeProvider)
        self._at: dict[Span, list[cst.CSTNode]] = defaultdict(list)
        self._lines: dict[cst.CSTNode, int] = {}
        for node, place in wrapper.resolve(PositionProvider).items():
            self._lines[node] = place.start.line
            span = (place.start.line, place.start.column, place.end.line, place.end.column)
            self._at[span].append(node)

    def find(self, node: ast.AST | None, kind: type[N]) -> N | None:
        """Return the concrete node of one of the rules' tree; None where the two do not agree on its place."""
        if (
            not isinstance(node, (ast.expr, ast.stmt))
            or node.end_lineno is None
            or node.end_col_offset is None
        ):
            return None
        start, end = self._column(node.lineno, node.col_offset), self._column(node.end_lineno, node.end_col_offset)  # fmt: skip
        found = self._at.get((node.lineno, start, node.end_lineno, end), [])
        return next((one for one in found if isinstance(one, kind)), None)

    def expression(self, node: ast.expr | None) -> cst.BaseExpression | None:
        """Return the concrete node of any expression."""
        return self.find(node, cst.BaseExpression)  # type: ignore[type-abstract]

    def _column(self, line: int, offset_bytes: int) -> int:
        """``ast`` counts bytes of UTF-8, libcst characters."""
        return len(self.script.lines[line - 1].encode("utf-8")[:offset_bytes].decode("utf-8", "ignore"))

    def line(self, node: cst.CSTNode) -> int:
        return self._lines[node]

    def every(self, kind: type[N]) -> Iterator[N]:
        """Yield the nodes of one kind, in no order that matters."""
        return (node for node in self._lines if isinstance(node, kind))

    def statement(self, node: cst.CSTNode | None) -> cst.SimpleStatementLine | None:
        """Return the line that ``node`` stands on; None where it shares that line, or stands in a block's head."""
        while node is not None and not isinstance(node, cst.SimpleStatementLine):
            if isinstance(node, (cst.BaseCompoundStatement, cst.BaseSuite, cst.Lambda)):
                return None
            node = self.parents.get(node)
        return node if node is not None and len(node.body) == 1 else None

    def stands_in_module(self, statement: cst.CSTNode) -> bool:
        return self.parents.get(statement) is self.module

    def new_statement(self, text: str) -> cst.BaseStatement:
        return cst.parse_statement(text, config=self.module.config_for_parsing)

    def string(self, text: str) -> cst.SimpleString:
        """Return a literal in the quotes that the script mostly uses."""
        return cst.SimpleString(f"{self.quote}{text}{self.quote}")

    def applied(self, edits: Edits) -> str:
        """Return the script with ``edits`` made; all else is as it was, to the byte."""
        changed = self.module.visit(_Applier(edits, self._around(edits)))
        assert isinstance(changed, cst.Module)
        return changed.code

    def _around(self, edits: Edits) -> set[cst.CSTNode]:
        """Return the nodes that hold something that is edited: nothing else is walked through."""
        found: set[cst.CSTNode] = set()
        for edited in (*edits.changes, *edits.before, *edits.after, *edits.removed):
            node: cst.CSTNode | None = edited
            while node is not None and node not in found:
                found.add(node)
                node = self.parents.get(node)
        return found


class _Applier(cst.CSTTransformer):
    def __init__(self, edits: Edits, around: set[cst.CSTNode]) -> None:
        super().__init__()
        self.edits = edits
        self.around = around

    def on_visit(self, node: cst.CSTNode) -> bool:
        return node in self.around

    def on_leave(self, original_node: Any, updated_node: Any) -> Any:
        for change in self.edits.changes.get(original_node, ()):
            updated_node = change(updated_node)
        if original_node in self.edits.removed:
            return cst.RemoveFromParent()
        before, after = self.edits.before.get(original_node, []), self.edits.after.get(original_node, [])
        return cst.FlattenSentinel([*before, updated_node, *after]) if before or after else updated_node
