"""Structured log lines, one JSON object each, without anything a member wrote or holds."""

import logging.config
import re
from typing import Any

import structlog
from structlog.types import EventDict, WrappedLogger

SECRET = re.compile(r"sk-[A-Za-z0-9_-]{8,}")


def redact(_logger: WrappedLogger, _method: str, event: EventDict) -> EventDict:
    """The last line of defence: nothing that looks like a key leaves the process in a log."""
    return {
        name: SECRET.sub("sk-…", value) if isinstance(value, str) else value
        for name, value in event.items()
    }


SHARED: list[Any] = [
    structlog.contextvars.merge_contextvars,
    structlog.stdlib.add_log_level,
    structlog.stdlib.add_logger_name,
    structlog.processors.TimeStamper(fmt="iso", utc=True),
    structlog.processors.format_exc_info,
]


def formatter() -> logging.Formatter:
    return structlog.stdlib.ProcessorFormatter(
        foreign_pre_chain=[*SHARED, structlog.stdlib.PositionalArgumentsFormatter()],
        processors=[
            structlog.stdlib.ProcessorFormatter.remove_processors_meta,
            redact,
            structlog.processors.JSONRenderer(),
        ],
    )


def configure(config: dict[str, Any]) -> None:
    structlog.configure(
        processors=[*SHARED, structlog.stdlib.ProcessorFormatter.wrap_for_formatter],
        logger_factory=structlog.stdlib.LoggerFactory(),
        wrapper_class=structlog.stdlib.BoundLogger,
        cache_logger_on_first_use=True,
    )
    logging.config.dictConfig(config)
