"""Usage as a CSV file: one line for each day, model and key."""

import csv
from collections.abc import Iterable, Iterator
from typing import Any

from django.db.models import QuerySet
from django.http import HttpResponseBase, StreamingHttpResponse

from inference.models import Usage

COLUMNS = {
    "day_utc": "day",
    "model": "model",
    "key": "key__hint",
    "requests": "requests",
    "input_tokens": "prompt_tokens",
    "cached_input_tokens": "cached_tokens",
    "output_tokens": "completion_tokens",
    "refused_requests_a_minute": "refused_rpm",
    "refused_in_parallel": "refused_parallel",
    "failed": "failed",
    "left_before_first_word": "left_early",
}
# What spreadsheets take for the beginning of a formula.
FORMULA = ("=", "+", "-", "@", "\t", "\r")


class _Echo:
    def write(self, text: str) -> str:
        return text


def download(rows: "QuerySet[Usage]", name: str) -> HttpResponseBase:
    """Streamed, so that years of days take no more memory than one."""
    found = rows.order_by("day", "model", "key__requested_at").values_list(*COLUMNS.values())
    response = StreamingHttpResponse(_written(found), content_type="text/csv; charset=utf-8")
    response["Content-Disposition"] = f'attachment; filename="{name}.csv"'
    return response


def _written(found: Iterable[tuple[Any, ...]]) -> Iterator[str]:
    writer = csv.writer(_Echo())
    yield writer.writerow(COLUMNS)
    for row in found:
        yield writer.writerow([_safe(value) for value in row])


def _safe(value: Any) -> Any:
    """Text that a spreadsheet would run gets an apostrophe in front. A key's last characters may
    begin with a hyphen."""
    return f"'{value}" if isinstance(value, str) and value.startswith(FORMULA) else value
