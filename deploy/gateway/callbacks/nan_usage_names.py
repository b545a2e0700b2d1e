"""A callback of LiteLLM: usage is counted under the name that was called.

LiteLLM keeps a day's totals by key, route and *engine's* model name; the public name is only
written along when the first call of the day makes the row. All names of a slot call its engines by
the slot's name, so without this the calls to one name would be added to another's.
"""

from __future__ import annotations

from typing import Any

from litellm.integrations.custom_logger import CustomLogger


class UsageNames(CustomLogger):
    async def async_logging_hook(
        self, kwargs: dict[str, Any], result: Any, call_type: str
    ) -> tuple[dict[str, Any], Any]:
        """Runs before LiteLLM's own counting reads the same object."""
        counted = kwargs.get("standard_logging_object")
        if counted and counted.get("model_group"):
            counted["model"] = counted["model_group"]
        return kwargs, result


callback = UsageNames()
