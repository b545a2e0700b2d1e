"""What we hold about a person, for herself."""

from typing import Any

from allauth.account.models import EmailAddress
from allauth.mfa.models import Authenticator
from allauth.socialaccount.models import SocialAccount
from allauth.usersessions.models import UserSession
from django.db.models import Model, QuerySet

from inference.models import Key, Usage, UsageLook
from members.models import Ballot, Decision, Proposal, User


def export(*, user: User) -> dict[str, Any]:
    """Everything that names her, ready for JSON; not the secrets (password, second factors)."""
    return {
        **_account(user),
        **_membership(user),
        **_votes(user),
        **_texts(user),
        **_usage(user),
        "mails": _rows(user.mails.order_by("pk"), "kind", "to", "language", "state", "sent_at"),
        "prompts_and_answers": "never stored",
    }


def _account(user: User) -> dict[str, Any]:
    """How she signs in, and from where."""
    return {
        "account": _fields(
            user, "public_id", "email", "name", "language", "date_joined", "last_login"
        ),
        "addresses": _rows(EmailAddress.objects.filter(user=user), "email", "verified", "primary"),
        "github": _rows(
            SocialAccount.objects.filter(user=user), "provider", "uid", "extra_data", "date_joined"
        ),
        "second_factors": _rows(
            Authenticator.objects.filter(user=user), "type", "created_at", "last_used_at"
        ),
        "sessions": _rows(
            UserSession.objects.filter(user=user), "created_at", "ip", "last_seen_at", "user_agent"
        ),
    }


def _membership(user: User) -> dict[str, Any]:
    """How she came in, and what became of it."""
    return {
        "applications": _rows(
            user.applications.order_by("pk"),
            "state",
            "builds",
            "clients",
            "other_client",
            "tokens_per_day",
            "referred_by",
            "question",
            "answer",
            "applied_at",
            "edited_at",
        ),
        "decisions": _rows(
            Decision.objects.filter(application__user=user).order_by("pk"),
            "action",
            "reason_code",
            "reason",
            "at",
            "undone_at",
        ),
        "membership": _fields(getattr(user, "membership", None), "state", "since"),
        "events": _rows(user.membership_events.order_by("pk"), "action", "reason", "at"),
    }


def _votes(user: User) -> dict[str, Any]:
    return {
        "proposals": _rows(
            Proposal.objects.filter(proposer=user).order_by("pk"),
            "repo",
            "reason",
            "proposed_at",
            "state",
            "decision_reason",
        ),
        "seconded": _rows(user.seconds.order_by("pk"), "proposal__repo", "at"),
        "recalls_signed": _rows(user.recall_signatures.order_by("pk"), "swap__slot__name", "at"),
        "on_the_roll_of": _rows(user.roll_entries.order_by("pk"), "vote__slug"),
        # Until the close; afterwards nobody knows which ballot was hers.
        "ballots": _rows(
            Ballot.objects.filter(voter__user=user).order_by("vote"), "vote__slug", "ranking"
        ),
    }


def _texts(user: User) -> dict[str, Any]:
    """Among the examples."""
    return {
        "texts": _rows(
            user.recipe_edits.order_by("pk"),
            "recipe__client",
            "recipe__kind",
            "title",
            "version",
            "body",
            "state",
            "at",
            "reason",
        ),
        "text_votes": _rows(
            user.recipe_votes.order_by("pk"), "recipe__client", "version", "works", "at"
        ),
    }


def _usage(user: User) -> dict[str, Any]:
    return {
        "keys": _rows(
            Key.objects.of(user).order_by("requested_at"),
            "hint",
            "state",
            "requested_at",
            "revealed_at",
            "deleted_at",
            "last_used_on",
        ),
        "usage": _rows(
            Usage.objects.filter(holder_id=user.public_id).order_by("day", "pk"),
            "day",
            "key__hint",
            "model",
            "requests",
            "prompt_tokens",
            "cached_tokens",
            "completion_tokens",
            "refused_rpm",
            "refused_parallel",
            "failed",
            "left_early",
        ),
        "usage_opened_by_admins": _rows(
            UsageLook.objects.filter(holder_id=user.public_id).order_by("pk"), "reason", "at"
        ),
    }


def _fields(row: Model | None, *names: str) -> dict[str, Any] | None:
    return {name: getattr(row, name) for name in names} if row else None


def _rows(rows: QuerySet[Any], *names: str) -> list[dict[str, Any]]:
    return list(rows.values(*names))
