"""Members are told once of each rotation, and once more before a name is retired."""

import re
from datetime import timedelta

import pytest
from django.utils import timezone, translation
from django.utils.formats import date_format
from django.utils.timezone import localtime

from inference.models import CatalogModel, PublicName
from members import letters, outbox, rotations
from members.mails import APART
from members.membership import suspend
from members.models import Application, Mail, User
from tests.fakes.smtp import SmtpServer
from tests.inference.names.conftest import Fleet, fleet_of, new_model, old_model
from tests.members.test_outbox import well_written

pytestmark = pytest.mark.django_db


@pytest.fixture
def old(db: None) -> CatalogModel:
    return old_model()


@pytest.fixture
def new(db: None) -> CatalogModel:
    return new_model()


@pytest.fixture
def fleet(old: CatalogModel) -> Fleet:
    return fleet_of(old)


@pytest.fixture(autouse=True)
def _only_ours(member: User, other_member: User, waiting: Application, outsider: User) -> None:
    """Two members, one who waits, one outsider; their welcome is another test's."""
    Mail.objects.all().delete()


def mails() -> list[tuple[str, str]]:
    return sorted(Mail.objects.values_list("kind", "to"))


def send_all() -> None:
    Mail.objects.filter(state="due").update(due_at=timezone.now())
    outbox.send_due()


def days_pass(count: int) -> None:
    """For the names that leave."""
    span = timedelta(days=count)
    for name in PublicName.objects.filter(retire_at__isnull=False):
        name.retire_at -= span
        name.told_at = name.told_at and name.told_at - span
        name.save()


def body(mail: object) -> str:
    return re.sub(r"\s+", " ", mail.get_body(("plain",)).get_content())


TOLD = [("rotation_done", "mara@example.org"), ("rotation_done", "nora@example.org")]
WARNED = [("name_retires", "mara@example.org"), ("name_retires", "nora@example.org")]


def test_members_are_told_once_of_a_rotation(fleet: Fleet, new: CatalogModel) -> None:
    rotations.tell()
    assert mails() == []
    swap = fleet.begin(new)
    rotations.tell()
    assert mails() == []
    fleet.finish(swap)
    for _ in range(2):
        rotations.tell()
    assert mails() == TOLD


def test_a_run_that_died_is_begun_again(fleet: Fleet, new: CatalogModel) -> None:
    fleet.swap(new)
    rotations.tell()
    PublicName.objects.update(told_at=None)
    rotations.tell()
    assert mails() == TOLD
    assert PublicName.objects.get(name="old-one").told_at is not None


def test_a_swap_that_goes_back_tells_nobody(fleet: Fleet, new: CatalogModel) -> None:
    fleet.go_back(fleet.begin(new))
    rotations.tell()
    assert mails() == []


def test_a_suspended_member_is_not_told(
    fleet: Fleet, new: CatalogModel, other_member: User, admin: User
) -> None:
    suspend(membership=other_member.membership, actor=admin, reason="x")
    Mail.objects.all().delete()
    fleet.swap(new)
    rotations.tell()
    assert mails() == TOLD[:1]


def test_a_warning_follows_three_days_before_the_end(fleet: Fleet, new: CatalogModel) -> None:
    fleet.swap(new)
    rotations.tell()
    days_pass(10)
    rotations.tell()
    assert mails() == TOLD
    days_pass(1)
    for _ in range(2):
        rotations.tell()
    assert mails() == WARNED + TOLD
    assert PublicName.objects.get(name="old-one").warned_at is not None


def test_no_warning_right_after_the_first_mail(
    fleet: Fleet, new: CatalogModel, settings: object
) -> None:
    settings.RETIRED_NAME_DAYS = 2
    fleet.swap(new)
    for _ in range(2):
        rotations.tell()
    assert mails() == TOLD


def test_a_rotation_back_is_told_of_again(
    fleet: Fleet, old: CatalogModel, new: CatalogModel
) -> None:
    """And again: each time it is another last day."""
    for model in (new, old, new):
        fleet.swap(model)
        rotations.tell()
    assert mails() == sorted(TOLD * 3)


def test_batches_are_transactions_of_their_own(
    fleet: Fleet, new: CatalogModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rotations, "BATCH", 1)
    fleet.swap(new)
    rotations.tell()
    assert mails() == TOLD
    first, second = Mail.objects.order_by("due_at").values_list("due_at", flat=True)
    assert second - first == APART


# -- What they say --------------------------------------------------------------------------------


def test_the_mail_says_what_changed_and_what_to_do(
    fleet: Fleet, new: CatalogModel, member: User, mailbox: SmtpServer
) -> None:
    fleet.swap(new)
    rotations.tell()
    Mail.objects.exclude(user=member).delete()
    send_all()
    [mail] = mailbox.mails
    assert mail["Subject"] == "“nan” is now New-One"
    day = PublicName.objects.get(name="old-one").retire_at
    assert day is not None
    with translation.override("en"):
        until = date_format(localtime(day), "DATETIME_FORMAT")
    assert body(mail) == (
        "Hello Mara,"
        " Another model now answers as “nan”: New-One has taken the place of Old-One."
        " If your tools call “nan”, there is nothing to do. Your key stays the same."
        " If they call “old-one”: that name goes on answering, with the new model, until"
        f" {until} (Madrid). Before then, write “nan” instead, which is always the current model,"
        " or “new-one”."
        " New: reasoning before it answers"
        " No longer: understanding images"
        " Context: 50,000 tokens (before: 100,000)"
        " http://127.0.0.1:8000/key/"
        " -- You get this mail because of your account at http://127.0.0.1:8000. Questions:"
        " admins@localhost "
    )


def test_the_warning_says_when_and_what_instead(
    fleet: Fleet, new: CatalogModel, member: User, mailbox: SmtpServer
) -> None:
    fleet.swap(new)
    rotations.tell()
    days_pass(12)
    rotations.tell()
    Mail.objects.exclude(user=member, kind="name_retires").delete()
    send_all()
    [mail] = mailbox.mails
    day = PublicName.objects.get(name="old-one").retire_at
    assert day is not None
    with translation.override("en"):
        last_day = date_format(localtime(day))
    assert mail["Subject"].strip() == f"The model name “old-one” stops answering on {last_day}"
    assert "write “nan” instead, which is always the current model, or “new-one”" in body(mail)


@pytest.mark.parametrize("language", ["es", "en"])
def test_both_mails_are_well_written(
    fleet: Fleet, old: CatalogModel, new: CatalogModel, member: User, language: str
) -> None:
    old.title = new.title = "<b>R&D</b>"
    old.save()
    new.save()
    User.objects.update(language=language)
    fleet.swap(new)
    rotations.tell()
    well_written(letters.compose(Mail.objects.get(user=member)), language)
    days_pass(12)
    rotations.tell()
    warning = Mail.objects.get(user=member, kind="name_retires")
    well_written(letters.compose(warning), language)


def test_what_is_no_longer_true_is_not_sent(
    fleet: Fleet, old: CatalogModel, new: CatalogModel, mailbox: SmtpServer
) -> None:
    """The model came back before the mail went out."""
    fleet.swap(new)
    rotations.tell()
    fleet.swap(old)
    send_all()
    assert mailbox.mails == []
    assert set(Mail.objects.values_list("state", flat=True)) == {"cancelled"}


def test_nobody_who_left_meanwhile_is_written_to(
    fleet: Fleet, new: CatalogModel, member: User, admin: User, mailbox: SmtpServer
) -> None:
    fleet.swap(new)
    rotations.tell()
    suspend(membership=member.membership, actor=admin, reason="x")
    send_all()
    told = [m["To"] for m in mailbox.mails if "is now" in m["Subject"]]
    assert told == ["nora@example.org"]
