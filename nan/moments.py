"""Times that people type, by the clocks of the site's time zone."""

from datetime import datetime, timedelta
from typing import Any

from django import forms
from django.core.exceptions import ValidationError
from django.utils import timezone
from django.utils.formats import date_format
from django.utils.translation import gettext_lazy as _

FORWARD = _(
    "On %(day)s the clocks go forward, and there is no %(time)s. "
    "Choose a time an hour earlier or later."
)
BACK = _(
    "On %(day)s the clocks go back, and %(time)s comes twice. "
    "Choose a time an hour earlier or later."
)


class MomentField(forms.DateTimeField):
    """A date with a time, as a browser's own field sends it."""

    def __init__(self, **more: Any) -> None:
        super().__init__(
            widget=forms.DateTimeInput(attrs={"type": "datetime-local"}, format="%Y-%m-%dT%H:%M"),
            input_formats=["%Y-%m-%dT%H:%M", "%Y-%m-%dT%H:%M:%S"],
            error_messages={"invalid": _("This is not a date with a time.")},
            **more,
        )

    def to_python(self, value: Any) -> datetime | None:
        try:
            found: datetime | None = super().to_python(value)
        except ValidationError as error:
            typed = (error.params or {}).get("datetime")
            if error.code != "ambiguous_timezone" or typed is None:
                raise
            raise ValidationError(_refusal(typed)) from None
        return found


def is_one_moment(typed: datetime) -> bool:
    """Not for a time without a zone that a change of clocks leaves out or has twice."""
    before, after = _distances(typed)
    return before == after


def _distances(typed: datetime) -> tuple[timedelta, timedelta]:
    """From UTC, before and after a change of clocks that `typed` falls into (PEP 495); else one."""
    zone = timezone.get_default_timezone()
    before, after = (typed.replace(tzinfo=zone, fold=fold).utcoffset() for fold in (0, 1))
    return before or timedelta(), after or timedelta()


def _refusal(typed: datetime) -> str:
    before, after = _distances(typed)
    told = {
        "day": date_format(typed, "SHORT_DATE_FORMAT"),
        "time": date_format(typed, "TIME_FORMAT"),
    }
    if before < after:
        return FORWARD % told
    return BACK % told
