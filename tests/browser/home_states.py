"""The first page for who comes by and for members, with nothing going on and with everything."""

from datetime import timedelta

from django.utils import timezone
from playwright.sync_api import Page

from inference.models import (
    CatalogModel,
    Incident,
    IncidentUpdate,
    Key,
    KeyHolder,
    Server,
    Slot,
    Swap,
)
from inference.status.shelf import shelf
from members import news
from members.models import News, User
from members.voting import rounds
from tests.browser.view import View, click
from tests.inference.staff import rows
from tests.inference.status.conftest import stood
from tests.members.voting.conftest import with_options
from tests.people import applicant, let_in, staff

LONG = (
    "El jueves por la noche cambiamos la fuente del segundo servidor.\nMás en "
    "https://example.org/una-pagina-con-un-nombre-bastante-largo-que-no-cabe-en-un-telefono/."
)


def home_views() -> list[View]:
    admin = staff("Alma")
    slot, down, new = _fleet()
    Server.objects.update(seats=25)
    member = _member("Hilda", admin)
    applicant("Wanda")
    _happened(slot, down, admin)
    _planned(slot, new, member, admin)
    shelf.forget()
    return [
        View("landing with models", "/"),
        View("home with everything", "/", member),
        View("staff, news", "/staff/news/", admin),
        View("staff, news refused", "/staff/news/", admin, _half),
        *rows_of_news(admin),
    ]


def rows_of_news(admin: User) -> list[View]:
    row = News.objects.first()
    assert row is not None
    path = "/admin/members/news/"
    return [View("rows, news", path, admin), View("row, news", f"{path}{row.pk}/change/", admin)]


def _fleet() -> tuple[Slot, Slot, CatalogModel]:
    slot, replicas, new = rows.small_fleet(2, prefix="box")
    down = rows.slot("embed", rows.catalogue_model("bge", "BGE M3", kind="embedding"))
    rows.replica(down, replicas[0].server)
    rows.slot("speech")
    stood(slot, "uuu")
    stood(down, "ddd")
    return slot, down, new


def _member(name: str, admin: User) -> User:
    user = let_in(applicant(name), by=admin)
    holder = KeyHolder.objects.create(owner_ref=user.public_id, member=user)
    now = timezone.now()
    Key.objects.create(
        holder=holder, state="active", token="a" * 64, hint="7Qf2", rpm=100, parallel=5,
        public_key=b"", active_at=now, revealed_at=now,
    )  # fmt: skip
    return user


def _happened(slot: Slot, down: Slot, admin: User) -> None:
    now = timezone.now()
    incident = Incident.objects.create(slot=down, began_at=now - timedelta(minutes=6))
    words = "The server's network card does not answer.\nWe are on it."
    IncidentUpdate.objects.create(incident=incident, text_es=words, text_en=words, author=admin)
    news.write(actor=admin, text_es=LONG, text_en=LONG)
    wrong = news.write(actor=admin, text_es="Mañana.", text_en="Tomorrow.")
    news.withdraw(news=wrong.pk, actor=admin)


def _planned(slot: Slot, new: CatalogModel, member: User, admin: User) -> None:
    vote = with_options(slot, member, admin)
    rounds.open_vote(vote=vote, actor=admin, closes_at=timezone.now() + timedelta(days=5))
    swap = rows.swap(slot, new, admin, state="approved")
    Swap.objects.filter(pk=swap.pk).update(start_at=timezone.now() + timedelta(days=2))


def _half(page: Page) -> None:
    page.fill("[name=text_es]", "Se fue la luz.")
    page.eval_on_selector("main form", "form => form.noValidate = true")
    click("main form .button")(page)
