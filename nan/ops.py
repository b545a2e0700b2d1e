"""Answers for machines: is this process alive, can it serve, what do its rows say."""

from collections.abc import Callable, Iterable

from django.core.cache import cache
from django.db import connection
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_safe
from prometheus_client import CONTENT_TYPE_LATEST, REGISTRY, generate_latest
from prometheus_client.core import Metric
from prometheus_client.registry import Collector


class FromRows(Collector):
    """Reads the rows when it is scraped, so that every web process tells the same."""

    def __init__(self, read: Callable[[], Iterable[Metric]]) -> None:
        self._read = read

    def describe(self) -> Iterable[Metric]:
        """Nothing: the registry would otherwise collect, and so query, while Django starts."""
        return []

    def collect(self) -> Iterable[Metric]:
        return self._read()


def tell(read: Callable[[], Iterable[Metric]]) -> None:
    """In every scrape from now on."""
    REGISTRY.register(FromRows(read))


@require_safe
@never_cache
def healthz(request: HttpRequest) -> HttpResponse:
    """This process answers. Touches nothing else, so an outage elsewhere never restarts it."""
    return HttpResponse("ok", content_type="text/plain")


@require_safe
@never_cache
def readyz(request: HttpRequest) -> HttpResponse:
    """The database answers. Without Redis the site still serves, so its state is only told."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT 1")
    cache.set("readyz", "1", 5)
    return JsonResponse({"database": "ok", "redis": "ok" if cache.get("readyz") else "away"})


@require_safe
@never_cache
def metrics(request: HttpRequest) -> HttpResponse:
    """For Prometheus, inside only: the edge answers 404 for this path."""
    return HttpResponse(generate_latest(REGISTRY), content_type=CONTENT_TYPE_LATEST)
