"""What an engine says of its KV cache once it serves; pages and checks go by it from then on."""

from django.utils import timezone

from inference.engine import Engine, EngineUnavailable
from inference.models import Measurement, Replica, measured_with


def note(client: Engine, replica: Replica) -> bool:
    """Whether there is nothing left to ask this engine for."""
    model, server = replica.model, replica.server
    place = measured_with(model, server, replica.gpus) if model else ""
    if model is None or not place:
        return False
    try:
        tokens = client.metrics().kv_tokens or replica.report.get("kv_tokens")
    except EngineUnavailable:
        return False
    if not tokens:
        return True  # an encoder has no such cache, and an old engine does not tell of it
    Measurement.objects.update_or_create(
        measured_with=place,
        defaults={
            "model": model,
            "kv_tokens": tokens,
            "concurrent": tokens / model.context_length,
            "gpus": server.kinds_of(replica.gpus),
            "engine": server.engine,
            "server": server,
            "at": timezone.now(),
        },
    )
    return True
