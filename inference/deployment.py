"""One entry of the gateway's model list, in our terms and in LiteLLM's. Knows nothing of our rows.

An entry ties one public name to an address and to the name by which the engine there knows itself.
Two entries with one public name would be balanced.
"""

import hashlib
import json
from dataclasses import dataclass
from typing import Any, Self

TIMEOUT = 900
"""Seconds without an answer…"""
STREAM_TIMEOUT = 300
"""…and without the next chunk of a stream; neither bounds the whole of one."""
API_KEY = "os.environ/ENGINE_API_KEY"
"""LiteLLM reads it from its own environment at each call, so the key itself is never stored."""


@dataclass(frozen=True, kw_only=True)
class Deployment:
    """`site` marks the entries of this installation."""

    id: str
    name: str
    engine_name: str
    api_base: str
    mode: str
    max_input_tokens: int
    max_output_tokens: int
    site: str
    timeout: float = TIMEOUT
    stream_timeout: float = STREAM_TIMEOUT

    @property
    def digest(self) -> str:
        """Also of what the gateway does not tell again, which is where it has the key from."""
        return hashlib.sha256(json.dumps(self.body(), sort_keys=True).encode()).hexdigest()

    def body(self) -> dict[str, Any]:
        """hosted_vllm/, because with openai/ a call to /v1/messages would reach the engine as
        /v1/responses."""
        return {
            "model_name": self.name,
            "litellm_params": {
                "model": f"hosted_vllm/{self.engine_name}",
                "api_base": self.api_base,
                "api_key": API_KEY,
                "timeout": self.timeout,
                "stream_timeout": self.stream_timeout,
            },
            "model_info": {
                "id": self.id,
                "mode": self.mode,
                "max_tokens": self.max_output_tokens,
                "max_input_tokens": self.max_input_tokens,
                "max_output_tokens": self.max_output_tokens,
                "site": self.site,
            },
        }

    @classmethod
    def read(cls, row: dict[str, Any]) -> Self:
        """Entries of others may lack anything but a name and an id."""
        params, info = row.get("litellm_params") or {}, row.get("model_info") or {}
        return cls(
            id=str(info["id"]),
            name=row["model_name"],
            engine_name=str(params.get("model") or "").removeprefix("hosted_vllm/"),
            api_base=str(params.get("api_base") or ""),
            mode=str(info.get("mode") or ""),
            max_input_tokens=int(info.get("max_input_tokens") or 0),
            max_output_tokens=int(info.get("max_output_tokens") or 0),
            site=str(info.get("site") or ""),
            timeout=float(params.get("timeout") or 0),
            stream_timeout=float(params.get("stream_timeout") or 0),
        )
