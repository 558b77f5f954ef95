"""Arguments of a call put in, taken out and renamed, with the layout of the others kept. Pure."""

from __future__ import annotations

from collections.abc import Sequence

import libcst as cst

_SPACE = cst.SimpleWhitespace(" ")
_NONE = cst.SimpleWhitespace("")
_TIGHT = cst.AssignEqual(whitespace_before=_NONE, whitespace_after=_NONE)


def index_of(call: cst.Call, name: str) -> int | None:
    """Return the place of the keyword ``name``; None when the call does not spell it out."""
    return next((i for i, one in enumerate(call.args) if one.keyword and one.keyword.value == name), None)


def renamed(call: cst.Call, old: str, new: str) -> cst.Call:
    """Return ``f(new=x)`` for ``f(old=x)``."""
    return call.with_changes(
        args=[
            one.with_changes(keyword=cst.Name(new)) if one.keyword and one.keyword.value == old else one
            for one in call.args
        ]
    )


def without_argument(call: cst.Call, name: str) -> cst.Call:
    """Return the call without the keyword ``name``; a comment on its line goes with it."""
    place = index_of(call, name)
    if place is None:
        return call
    args = [*call.args[:place], *call.args[place + 1 :]]
    if not args:
        return call.with_changes(args=[], whitespace_before_args=_NONE)
    if place == len(args):
        args[-1] = _as_last(args[-1], call.args[place])
    return call.with_changes(args=args)


def _as_last(arg: cst.Arg, gone: cst.Arg) -> cst.Arg:
    """Return ``arg`` closing the call as ``gone`` did; its own comment stays."""
    between = arg.comma.whitespace_after if isinstance(arg.comma, cst.Comma) else _NONE
    if isinstance(between, cst.ParenthesizedWhitespace):
        end = gone.comma.whitespace_after if isinstance(gone.comma, cst.Comma) else gone.whitespace_after_arg
        if isinstance(end, cst.ParenthesizedWhitespace):
            closing = between.with_changes(indent=end.indent, last_line=end.last_line)
            if isinstance(gone.comma, cst.Comma) or between.first_line.comment is not None:
                return arg.with_changes(comma=cst.Comma(whitespace_after=closing))
            return arg.with_changes(comma=cst.MaybeSentinel.DEFAULT, whitespace_after_arg=closing)
    return arg.with_changes(comma=gone.comma, whitespace_after_arg=gone.whitespace_after_arg)


def with_argument(call: cst.Call, name: str, value: cst.BaseExpression) -> cst.Call:
    """Return the call with ``name=value`` behind its arguments, on a line of its own where they have theirs."""
    new = cst.Arg(keyword=cst.Name(name), value=value, equal=_TIGHT)
    if not call.args:
        return call.with_changes(args=[new])
    last = call.args[-1]
    end = last.comma.whitespace_after if isinstance(last.comma, cst.Comma) else last.whitespace_after_arg
    if not isinstance(end, cst.ParenthesizedWhitespace):
        comma = last.comma if isinstance(last.comma, cst.Comma) else cst.MaybeSentinel.DEFAULT
        new = new.with_changes(comma=comma, whitespace_after_arg=last.whitespace_after_arg)
        head = last.with_changes(comma=cst.Comma(whitespace_after=_between(call.args)), whitespace_after_arg=_NONE)  # fmt: skip
        return call.with_changes(args=[*call.args[:-1], head, new])
    return call.with_changes(args=[*call.args[:-1], *_on_its_own_line(call, last, end, new)])


def _between(args: Sequence[cst.Arg]) -> cst.BaseParenthesizableWhitespace:
    """Return what separates the arguments of a call that ends on its last argument's line: a space."""
    comma = args[-2].comma if len(args) > 1 else None
    space = comma.whitespace_after if isinstance(comma, cst.Comma) else _SPACE
    return _bare(space) if isinstance(space, cst.ParenthesizedWhitespace) else _SPACE


def _on_its_own_line(
    call: cst.Call, last: cst.Arg, end: cst.ParenthesizedWhitespace, new: cst.Arg
) -> list[cst.Arg]:
    closing = _bare(end)
    opening = call.whitespace_before_args
    between = end.with_changes(empty_lines=[])
    if isinstance(opening, cst.ParenthesizedWhitespace):
        between = between.with_changes(indent=opening.indent, last_line=opening.last_line)
    head = last.with_changes(comma=cst.Comma(whitespace_after=between), whitespace_after_arg=_NONE)
    if isinstance(last.comma, cst.Comma):
        return [head, new.with_changes(comma=cst.Comma(whitespace_after=closing))]
    return [head, new.with_changes(whitespace_after_arg=closing)]


def _bare(space: cst.ParenthesizedWhitespace) -> cst.ParenthesizedWhitespace:
    """Return the same line break without its comments."""
    first = cst.TrailingWhitespace(newline=space.first_line.newline)
    return space.with_changes(first_line=first, empty_lines=[])


def with_first(call: cst.Call, value: cst.BaseExpression, names: Sequence[str] = ()) -> cst.Call:
    """Return the call with ``value`` before its arguments; plain arguments get the keywords ``names``."""
    plain = list(names)
    rest = [
        one.with_changes(keyword=cst.Name(plain.pop(0)), equal=_TIGHT)
        if plain and one.keyword is None and not one.star
        else one
        for one in call.args
    ]
    if not rest:
        return call.with_changes(args=[cst.Arg(value)])
    space = call.whitespace_before_args
    between = _bare(space) if isinstance(space, cst.ParenthesizedWhitespace) else _SPACE
    return call.with_changes(args=[cst.Arg(value, comma=cst.Comma(whitespace_after=between)), *rest])
