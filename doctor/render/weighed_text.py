"""Two runs' differences in words: which is better, by how much, and whether chance alone would do it."""

from __future__ import annotations

from collections.abc import Iterator

from doctor.language import say
from doctor.meaningful import Weighed
from doctor.render.run_text import figure
from runner.strings import printable
from runner.text import t


def weighed_lines(weighed: tuple[Weighed, ...], names: tuple[str, str]) -> Iterator[str]:
    """Yield a sentence for each difference of which something can be said, and what one run each cannot say."""
    told = [one for one in weighed if one.chance is not None]
    yield from (_line(one, names) for one in told)
    if any(one.is_more_than_chance for one in told):
        yield say(
            "One run each: another seed may move these figures as much. Repeat both with other seeds before you rely on it."
        )


def _line(one: Weighed, names: tuple[str, str]) -> str:
    what = _what(one)
    if not one.is_more_than_chance:
        return say(t("{what}: the difference ({difference}) is no more than chance makes (± {chance}).",
                     what=what, difference=_signed(one), chance=_amount(one, one.chance or 0.0)))  # fmt: skip
    if not one.better:
        return say(t("{what}: they differ by {difference}, more than chance makes (± {chance}).",
                     what=what, difference=_signed(one), chance=_amount(one, one.chance or 0.0)))  # fmt: skip
    return say(t("{what}: {run} is better by {difference}, more than chance makes (± {chance}).",
                 what=what, run=names[one.better == "b"], difference=_amount(one, abs(one.difference)),
                 chance=_amount(one, one.chance or 0.0)))  # fmt: skip


def _what(one: Weighed) -> str:
    if one.rows is not None:
        return say(t("{name} on {rows} held-out {rows:row|rows}", name=printable(one.name), rows=one.rows))
    return say(t("Training loss, steps {first} to {last}", first=f"{one.first_step or 0:.0f}", last=f"{one.last_step or 0:.0f}"))  # fmt: skip


def _signed(one: Weighed) -> str:
    sign = "+" if one.difference > 0 else "-"
    return sign + _amount(one, abs(one.difference))


def _amount(one: Weighed, value: float) -> str:
    """Return a share in points, anything else as it is."""
    return (
        say(t("{points} points", points=f"{100 * value:.1f}")) if one.rows is not None else figure(value, 3)
    )
