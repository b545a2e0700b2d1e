"""Celery tasks of this app: each takes an id, calls one function, writes the outcome."""

from celery import shared_task

from members import membership, outbox, rotations
from members.models import Mail


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
