"""Celery tasks of this app: each takes an id, calls one function, writes the outcome."""

from celery import shared_task

from inference.heartbeats import beat
from members import alerts, membership, outbox, rotations
from members.models import Mail
from members.voting import closing, facts, ratify, recall, rounds


@shared_task
def send_mail(message_id: str) -> None:
    mail = Mail.objects.select_related("user").filter(message_id=message_id).first()
    if mail:
        outbox.send(mail)


@shared_task
def send_due_mails() -> None:
    """The sweep: whatever a lost message, a dead worker or an absent server left undone."""
    membership.activate_confirmed()
    membership.erase_left()
    outbox.send_due()
    outbox.forget_old()


@shared_task
def tell_rotations() -> None:
    rotations.tell()


@shared_task
def mail_alerts() -> None:
    alerts.mail_admins()
    beat("default")


@shared_task
def call_webhook() -> None:
    """By itself, so that one which does not answer holds up nothing else."""
    alerts.call_webhook()


@shared_task
def advance_votes() -> None:
    """Makes happen soon what the database's clock has decided: opens, closes, announces."""
    closing.close_due()
    recall.complete_due()
    rounds.open_due()
    ratify.announce_due()
    closing.tidy()


@shared_task
def look_up_facts() -> None:
    facts.look_up_due()
