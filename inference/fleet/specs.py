"""From rows to what a GPU server is told to start."""

from inference.gpu.spec import EngineSpec
from inference.models import CatalogModel, Replica

SHUTDOWN_SECONDS = 20
"""What an engine gives its open requests after SIGTERM. Never 0: vLLM then may hang half dead."""


def build(replica: Replica, model: CatalogModel, *, instance: str, names: list[str]) -> EngineSpec:
    """Raises `inference.gpu.spec.SpecError` if the catalogue's entry is not allowed."""
    flags = {
        **model.flags,
        "max-model-len": model.context_length,
        "enable-prompt-tokens-details": True,  # else no cached tokens in anybody's usage
    }
    if model.gpus_needed > 1:
        flags["tensor-parallel-size"] = model.gpus_needed
    spec = EngineSpec(
        instance=instance,
        model=model.repo,
        revision=model.revision,
        names=tuple(names),
        host=replica.server.address,
        port=replica.port,
        gpus=tuple(replica.gpus),
        flags=flags,
        environment=model.environment,
        shutdown_timeout=SHUTDOWN_SECONDS,
        memory_mib=model.memory_mib if replica.gpus else 0,
        disk_mib=model.weights_mib,
    )
    return EngineSpec.from_json(spec.to_json())


def names_for(replica: Replica, model: CatalogModel) -> list[str]:
    """All that must answer, also the names of models that have left the slot lately."""
    live = replica.slot.public_names.live()
    return replica.slot.served_names(model, list(live.values_list("name", flat=True)))


def memory_is_free(replica: Replica, model: CatalogModel) -> bool:
    """By the server's last report, on every GPU that the replica takes."""
    return all(
        (free := replica.server.free_mib(gpu)) is not None and free >= model.memory_mib
        for gpu in replica.gpus
    )
