"""What a person says about the switch, in the form or in a shell, read as an order."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from zoneinfo import ZoneInfo

from kafka_rescale.core.application.windows import CutoverWindows
from kafka_rescale.core.control.switch import Order
from kafka_rescale.core.errors import InvalidInput

NOW, IN_WINDOW = "now", "in the window"
POSTPONE, CUT_OVER_NOW, CANCEL = "postpone", "cut over now", "cancel"
ACTIONS = (POSTPONE, CUT_OVER_NOW, CANCEL)


def moment_ms(text: str, windows: CutoverWindows | None) -> int:
    """Return the moment that a person has written, in ms since the epoch.

    :param text: in ISO 8601; without an offset, in the time zone of the windows, or UTC.
    :raises InvalidInput: the text is not a moment.
    """
    try:
        found = datetime.fromisoformat(text.strip())
    except ValueError:
        raise InvalidInput(
            "time of the switch",
            found=repr(text),
            expected="a date and a time such as 2026-11-29T02:00, or 2026-11-29T02:00+01:00",
            remedy="Write it like that.",
        ) from None
    if found.tzinfo is None:
        found = found.replace(tzinfo=ZoneInfo(windows.time_zone) if windows is not None else UTC)
    return int(found.timestamp() * 1000)


def approved(answer: Mapping[str, object], windows: CutoverWindows | None) -> tuple[Order, int, str]:
    """Return the order in an approval, the time before which it does not count, and a remark.

    A time that can't be read does not end the run: the switch waits for another order. So does a window that the
    file has lost since the question was asked.

    :param answer: the fields of the form; empty for its defaults.
    """
    if at := str(answer.get("at") or ""):
        try:
            return Order.NOW, moment_ms(at, windows), ""
        except InvalidInput as error:
            return Order.HOLD, 0, str(error)
    if answer.get("when") == IN_WINDOW and windows is None:
        return Order.HOLD, 0, f"The answer says '{IN_WINDOW}', and the application file has no windows any more."
    return (Order.NOW if answer.get("when") == NOW else Order.WINDOW), 0, ""
