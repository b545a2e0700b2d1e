"""The database's clock, read in the statement that needs it.

`now()` of Postgres is the beginning of the transaction; these are the moment itself.
"""

from datetime import datetime

from django.db import connection
from django.db.models import DateTimeField, Func


class Moment(Func):
    """For a filter: `closes_at__gt=Moment()`."""

    function = "clock_timestamp"
    output_field = DateTimeField()


def moment() -> datetime:
    with connection.cursor() as cursor:
        cursor.execute("SELECT clock_timestamp()")
        found: datetime = cursor.fetchone()[0]
    return found
