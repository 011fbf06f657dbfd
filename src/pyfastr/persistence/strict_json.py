"""JSON of bounded size, without what its standard does not have."""

import json
import math
from typing import Any

from pyfastr.persistence.errors import RefusedError, damaged

# A choice among 1,000 points takes some 10,000 values. What is refused beyond these limits would
# have taken less than 200 MB, and what is within them takes less than a second.
MAX_BYTES, MAX_VALUES, MAX_DIGITS = 16 * 2**20, 400_000, 40
# A pipeline with a choice in it takes about ten.
MAX_DEPTH = 60


def within_limits(text: str) -> bool:
    """Whether a text is short enough to parse; every value but the first follows a mark."""
    return len(text) <= MAX_BYTES and sum(map(text.count, ",[{")) <= MAX_VALUES


def dumps(value: Any) -> str:
    """Return ASCII without spaces."""
    return json.dumps(value, separators=(",", ":"), allow_nan=False)


def loads(text: str) -> Any:
    """Parse; doubled names, numbers that are none, deep nests and endless lists are refused."""
    if not within_limits(text):
        raise damaged("its header has more values than any model needs")
    try:
        found = json.loads(
            text,
            object_pairs_hook=_unique,
            parse_int=_whole,
            parse_float=_finite,
            parse_constant=_finite,
        )
    except json.JSONDecodeError as error:
        raise damaged(f"its header is no JSON ({error.msg} at character {error.pos})") from None
    except RecursionError:
        raise _too_deep() from None
    _check_depth(found)
    return found


def _check_depth(value: Any) -> None:
    """Refuse what would exhaust the stack of those who walk through it."""
    level = [value]
    for _ in range(MAX_DEPTH):
        nested = (own for own in level if isinstance(own, list | dict))
        level = [part for own in nested for part in (own.values() if type(own) is dict else own)]
    if level:
        raise _too_deep()


def _too_deep() -> RefusedError:
    return damaged("its header is nested too deeply")


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise damaged("its header has a name twice")
    return found


def _whole(digits: str) -> int:
    if len(digits) > MAX_DIGITS:
        raise damaged(f"its header has a number of {len(digits)} digits")
    return int(digits)


def _finite(digits: str) -> float:
    value = float(digits)
    if not math.isfinite(value):
        raise damaged(f"its header has the number {digits[:MAX_DIGITS]}")
    return value
