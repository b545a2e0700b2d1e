"""Dates and numbers as the reader writes them."""

from datetime import datetime

import pytest
from django.template import Context, Template
from django.utils import translation

TEMPLATE = Template(
    '{% load humanize %}{{ at|date:"SHORT_DATE_FORMAT" }} | {{ at|date:"DATETIME_FORMAT" }}'
    " | {{ count|intcomma }}"
)


@pytest.mark.parametrize(
    ("language", "written"),
    [
        ("en", "10 Nov 2026 | 10 November 2026, 17:05 | 12,500"),
        ("es", "10/11/2026 | 10 de noviembre de 2026 a las 17:05 | 12\xa0500"),
    ],
)
def test_dates_and_numbers(language: str, written: str) -> None:
    context = Context({"at": datetime(2026, 11, 10, 17, 5), "count": 12_500})
    with translation.override(language):
        assert TEMPLATE.render(context) == written
