"""LiteLLM's totals by day: rows that only grow, told a page at a time.

Held to the real one by tests/inference/test_gateway_contract.py.
"""

import threading
from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

ZERO = {
    "prompt_tokens": 0,
    "completion_tokens": 0,
    "cache_read_input_tokens": 0,
    "total_tokens": 0,
    "successful_requests": 0,
    "failed_requests": 0,
    "api_requests": 0,
}
CHAT = "/v1/chat/completions"
Row = tuple[str, str, str]


@dataclass
class FakeUsage:
    """`rows_per_page` stands for the thousand of LiteLLM; `before_page` runs before each page."""

    rows_per_page: int = 1000
    before_page: Callable[[int], None] = lambda _page: None
    days: dict[str, dict[Row, dict[str, int]]] = field(
        default_factory=lambda: defaultdict(lambda: defaultdict(lambda: dict(ZERO)))
    )

    def __post_init__(self) -> None:
        self.lock = threading.Lock()

    def count(
        self,
        day: object,
        token: str,
        model: str = "nan",
        *,
        requests: int = 1,
        prompt: int = 10,
        completion: int = 5,
        cached: int = 0,
        route: str = CHAT,
    ) -> None:
        """As if `requests` calls of these tokens in all had ended."""
        with self.lock:
            metrics = self.days[str(day)][token, model, route]
            metrics["api_requests"] += requests
            metrics["successful_requests"] += requests
            metrics["prompt_tokens"] += prompt
            metrics["completion_tokens"] += completion
            metrics["cache_read_input_tokens"] += cached
            metrics["total_tokens"] += prompt + completion

    def answer(self, query: dict[str, str]) -> dict[str, Any]:
        day, page = query["start_date"], int(query.get("page", 1))
        self.before_page(page)
        with self.lock:
            wanted = query.get("api_key")
            rows = sorted(  # by id, so that new rows come in anywhere
                item for item in self.days[day].items() if wanted in (None, item[0][0])
            )
            size = min(self.rows_per_page, int(query.get("page_size", 50)))
            shown = rows[(page - 1) * size : page * size]
            breakdown: dict[str, Any] = {"model_groups": {}, "endpoints": {}, "api_keys": {}}
            for (token, model, route), metrics in shown:
                _add(_group(breakdown["model_groups"], model), token, metrics)
                _add(_group(breakdown["endpoints"], route), token, metrics)
                _add(breakdown["api_keys"], token, metrics)
        pages = -(-len(rows) // size)
        return {
            "results": [{"date": day, "breakdown": breakdown}] if shown else [],
            "metadata": {"page": page, "total_pages": pages, "has_more": page < pages},
        }


def _group(groups: dict[str, Any], name: str) -> dict[str, Any]:
    found: dict[str, Any] = groups.setdefault(name, {"metrics": {}, "api_key_breakdown": {}})
    return found["api_key_breakdown"]


def _add(entries: dict[str, Any], token: str, metrics: dict[str, int]) -> None:
    entry = entries.setdefault(token, {"metrics": dict(ZERO), "metadata": {}})
    for name, value in metrics.items():
        entry["metrics"][name] += value
