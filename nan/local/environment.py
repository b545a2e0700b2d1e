"""Which part sees which variables. A secret goes to those that use it and to nobody else."""

from collections.abc import Mapping

from .config import HOST, POOL_SIZE, Stack

# Taken out of what we inherit; parts that need one of them get it by name below.
SECRET = (
    "LITELLM_MASTER_KEY",
    "LITELLM_SALT_KEY",
    "LITELLM_DATABASE_URL",
    "ENGINE_API_KEY",
    "ALERT_WEBHOOK_URL",
    "HF_TOKEN",
    "DATABASE_URL",
    "REDIS_URL",
    "DJANGO_SECRET_KEY",
    "DJANGO_SECRET_KEY_FALLBACKS",
)
# Without bytecode every start compiles everything again.
HARMFUL = ("PYTHONDONTWRITEBYTECODE", "PYTHONHOME", "PYTHONPATH", "PYTHONSTARTUP")


def bare(stack: Stack) -> dict[str, str]:
    """For programs that are not ours: where to find things, which language, nothing else."""
    kept = ("PATH", "HOME", "USER", "LANG", "TZ", "TMPDIR", "LD_LIBRARY_PATH")
    return {name: stack.environ[name] for name in kept if name in stack.environ}


def inherited(stack: Stack) -> dict[str, str]:
    left_out = {*SECRET, *HARMFUL}
    kept = {name: value for name, value in stack.environ.items() if name not in left_out}
    return {**kept, "PYTHONUNBUFFERED": "1"}


def app_settings(stack: Stack, *, part: str = "manage") -> dict[str, str]:
    """What nan/settings.py reads: web, workers, beat, and a developer's shell."""
    return {
        "DJANGO_SETTINGS_MODULE": "nan.settings",
        "DJANGO_SECRET_KEY": stack.environ.get("DJANGO_SECRET_KEY")
        or stack.secrets["django_secret_key"],
        "DJANGO_SECRET_KEY_FALLBACKS": stack.environ.get("DJANGO_SECRET_KEY_FALLBACKS", ""),
        "DJANGO_DEBUG": stack.environ.get("DJANGO_DEBUG", "0"),
        "SITE_URL": stack.site_url,
        "API_URL": stack.api_url,
        "DATABASE_URL": stack.database_url,
        "DB_POOL_SIZE": str(POOL_SIZE[part]),
        "REDIS_URL": stack.redis_url,
        "NAN_LOCAL": "1",
        "NAN_STATE_DIR": str(stack.state_dir),
        "MAIL_DIR": stack.environ.get("MAIL_DIR") or str(stack.state_dir / "mail"),
        "PUBLIC_MODEL": stack.environ.get("PUBLIC_MODEL") or "nan",
        "POOL_DIR": str(stack.edge_dir),
        "POOL_URL": f"http://{HOST}:{stack.ports['pool']}",
        # One admin is enough on one's own machine.
        "SWAP_SECOND_ADMIN": stack.environ.get("SWAP_SECOND_ADMIN") or "0",
    }


def app(stack: Stack, *, part: str = "manage") -> dict[str, str]:
    return {**inherited(stack), **app_settings(stack, part=part)}


def web(stack: Stack) -> dict[str, str]:
    """A server that joins gets these from a page, against its one-time token."""
    return {
        **app(stack, part="web"),
        "GPU_REDIS_URL": stack.environ.get("GPU_REDIS_URL") or stack.redis_url,
        "ENGINE_API_KEY": stack.engine_api_key,
    }


def default_worker(stack: Stack) -> dict[str, str]:
    """The one that sends mails, tells the webhook of alerts, and reads the hub."""
    secrets = {name: stack.environ.get(name, "") for name in ("ALERT_WEBHOOK_URL", "HF_TOKEN")}
    return {**app(stack, part="worker-default"), **secrets}


def fleet_worker(stack: Stack) -> dict[str, str]:
    """The one that proves engines before members reach them, with the engines' key."""
    return {**app(stack, part="worker-fleet"), "ENGINE_API_KEY": stack.engine_api_key}


def gateway_worker(stack: Stack) -> dict[str, str]:
    """The one Celery worker that may use LiteLLM's admin API."""
    return {**app(stack, part="worker-gateway"), **gateway_access(stack)}


def gateway_access(stack: Stack) -> dict[str, str]:
    return {"GATEWAY_URL": stack.gateway_url, "LITELLM_MASTER_KEY": stack.master_key}


def gateway(stack: Stack) -> Mapping[str, str]:
    """The gateway's process: its own database, Redis, key and salt; nothing of the app's."""
    return {
        **inherited(stack),
        "DATABASE_URL": stack.litellm_database_url,
        **stack.redis_settings(),
        "LITELLM_MASTER_KEY": stack.master_key,
        "LITELLM_SALT_KEY": stack.salt_key,
        "ENGINE_API_KEY": stack.engine_api_key,
    }
