"""LiteLLM's model list, for tests/fakes/gateway.py."""

import threading
import uuid
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import unquote

Answer = tuple[int, Any]


@dataclass
class FakeModels:
    """What was put there by the API or, with `of_file`, by the configuration file."""

    entries: dict[str, dict[str, Any]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.lock = threading.RLock()

    # -- For tests -------------------------------------------------------------------------------

    def names(self) -> list[str]:
        """With those twice that two entries have."""
        return sorted(entry["model_name"] for entry in self.entries.values())

    def of_file(self, name: str) -> None:
        info = {"id": f"file:{name}", "db_model": False}
        entry = {"model_name": name, "litellm_params": {"model": "x/y"}, "model_info": info}
        self.entries[info["id"]] = entry

    # -- LiteLLM's behaviour ---------------------------------------------------------------------

    def answer(self, method: str, path: str, body: dict[str, Any]) -> Answer:
        with self.lock:
            if (method, path) == ("GET", "/model/info"):
                return 200, {"data": [_told(entry) for entry in self.entries.values()]}
            if (method, path) == ("POST", "/model/new"):
                return self._new(body)
            if (method, path) == ("POST", "/model/delete"):
                return self._delete(body)
            if method == "PATCH" and path.endswith("/update"):
                return self._patch(unquote(path.split("/")[2]), body)
        return _error(404, "Not Found")

    def _new(self, body: dict[str, Any]) -> Answer:
        id = body["model_info"]["id"]
        if id in self.entries:
            return _error(500, "{'error': 'Failed to add model to db.'}")
        info = {**body["model_info"], "db_model": True}
        self.entries[id] = {**body, "model_info": info}
        return 200, {"model_id": id}

    def _patch(self, id: str, body: dict[str, Any]) -> Answer:
        entry = self.entries.get(id)
        if entry is None or not entry["model_info"]["db_model"]:
            return _error(404 if entry is None else 400, f"Model {id} not found on proxy.")
        info = {**entry["model_info"], "id": str(uuid.uuid4()), **body.get("model_info", {})}
        params = {**entry["litellm_params"], **body.get("litellm_params", {})}
        name = body.get("model_name", entry["model_name"])
        self.entries[id] = {"model_name": name, "litellm_params": params, "model_info": info}
        return 200, {"model_id": id}

    def _delete(self, body: dict[str, Any]) -> Answer:
        entry = self.entries.get(body["id"])
        if entry is None or not entry["model_info"]["db_model"]:
            return _error(400, f"{{'error': 'Model with id={body['id']} not found in db'}}")
        del self.entries[body["id"]]
        return 200, {"message": "deleted"}


def _told(entry: dict[str, Any]) -> dict[str, Any]:
    params = {k: v for k, v in entry["litellm_params"].items() if k != "api_key"}
    return {**entry, "litellm_params": params}


def _error(status: int, message: str) -> Answer:
    return status, {"error": {"message": message, "type": "error", "code": str(status)}}
