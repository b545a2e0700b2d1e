"""A key in a text that others read is refused, whoever writes it, and is kept nowhere."""

from collections.abc import Callable

import pytest
from django.test import Client
from django.utils import timezone

from inference.models import Incident, IncidentUpdate, Slot
from inference.usage.staff import LookForm
from members import recipes
from members.forms import AnswerForm, ApplicationForm, LimitsForm, ProfileForm, ReasonForm
from members.models import Application, Decision, News, User
from members.vote_forms import DeclineForm, ExtendForm, ProposeForm, RatifyForm
from tests.pages.markup import faults
from tests.people import signed_in

pytestmark = pytest.mark.django_db
KEY = "sk-9fQ2mXv7LpR4tYw8ZbN3cD"
SAID = "looks like an API key (sk-…), beginning with sk-9…"


@pytest.fixture
def staff(admin: User) -> Client:
    return signed_in(admin)


@pytest.mark.parametrize("written", [KEY, KEY.replace("-", "%2D")])
def test_in_the_reason_for_declining_a_text(staff: Client, member: User, written: str) -> None:
    text = {"kind": "recipe", "title": "My setup", "version": "1", "body": "Set it up like this."}
    edit = recipes.write(user=member, client="zed", **text).edits.get()
    sent = {"action": "decline", "reason": f"Take out {written}"}
    answer = staff.post(f"/staff/recipes/{edit.pk}/", sent, follow=True)
    edit.refresh_from_db()
    page = answer.content.decode()
    assert SAID in page
    assert f'value="Take out {written}"' in page  # in her field, to be changed there
    assert (edit.state, edit.reason) == ("pending", "")


@pytest.mark.parametrize("field", ["text_es", "text_en"])
def test_in_the_words_about_an_incident(staff: Client, field: str) -> None:
    slot = Slot.objects.create(name="nan", title="Chat", number=1)
    incident = Incident.objects.create(slot=slot, began_at=timezone.now())
    sent = {"text_es": "Ya va.", "text_en": "It is back.", field: f"It is back with {KEY}"}
    answer = staff.post(f"/staff/incidents/{incident.pk}/", sent)
    page = answer.content.decode()
    assert (SAID in page, faults(answer, language="en")) == (True, [])
    assert page.count(KEY) == 1  # in the field that she sent, to be changed there
    assert not IncidentUpdate.objects.exists()


def test_in_news(staff: Client) -> None:
    answer = staff.post("/staff/news/", {"text_es": "Hola.", "text_en": f"Use {KEY}"})
    assert (answer.status_code, SAID in answer.content.decode()) == (422, True)
    assert not News.objects.exists()


@pytest.mark.parametrize("action", ["reject", "ask"])
def test_in_what_an_applicant_is_written(staff: Client, waiting: Application, action: str) -> None:
    sent = {"reject": {"reason_code": "other", "reason": KEY}, "ask": {"question": KEY}}[action]
    page = staff.post(
        "/staff/waitlist/decide/",
        {"action": action, "application": waiting.pk, **sent},
        follow=True,
    ).content.decode()
    assert SAID in page
    assert not Decision.objects.exists()


FORMS = {
    "builds": ApplicationForm,
    "answer": AnswerForm,
    "name": ProfileForm,
    "announcement_es": lambda data: RatifyForm(data, repo="a/b", tie=False),
    "announcement_en": lambda data: RatifyForm(data, repo="a/b", tie=False),
}
REASONS = [ReasonForm, LimitsForm, ProposeForm, ExtendForm, DeclineForm, LookForm]


@pytest.mark.parametrize(
    ("field", "form"), [*FORMS.items(), *(("reason", reason) for reason in REASONS)]
)
def test_in_every_other_form(field: str, form: Callable[..., ApplicationForm]) -> None:
    errors = form({field: f"Because of {KEY} it is so"}).errors
    assert "sk-9…" in str(errors[field])
