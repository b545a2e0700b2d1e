"""Forms of a person: her application and her account."""

from typing import TYPE_CHECKING, Any, ClassVar

from django import forms
from django.conf import settings
from django.utils.text import format_lazy
from django.utils.translation import gettext_lazy as _

from inference.staff.incidents import UpdateForm
from members.models import Application, Decision, User
from nan.leaks import refuse_keys

if TYPE_CHECKING:
    from django_stubs_ext import StrPromise


class ApplicationForm(forms.ModelForm[Application]):
    builds = forms.CharField(
        label=_("What do you build?"),
        help_text=_("A few sentences: what it is, and what you would use open models for."),
        max_length=2000,
        min_length=20,
        validators=[refuse_keys],
        widget=forms.Textarea(attrs={"rows": 6}),
    )
    clients = forms.MultipleChoiceField(
        label=_("Which clients do you use?"),
        choices=Application.Client.choices,
        required=False,
        widget=forms.CheckboxSelectMultiple,
    )
    other_client = forms.CharField(label=_("Another client"), max_length=100, required=False)
    tokens_per_day = forms.ChoiceField(
        label=_("Roughly how many tokens a day?"),
        help_text=_("In and out together. An estimate is fine; it helps us to plan servers."),
        choices=Application.Tokens.choices,
    )
    referred_by = forms.CharField(
        label=_("Who sent you?"),
        help_text=_("A member, a friend, a page. You may leave this empty."),
        max_length=120,
        required=False,
    )

    class Meta:
        model = Application
        fields: ClassVar[list[str]] = [
            "builds",
            "clients",
            "other_client",
            "tokens_per_day",
            "referred_by",
        ]

    def clean(self) -> dict[str, Any]:
        answers = super().clean() or self.cleaned_data
        if "other" in answers.get("clients", []) and not answers.get("other_client"):
            self.add_error("other_client", _("Which one?"))
        return answers


class AnswerForm(forms.Form):
    answer = forms.CharField(
        label=_("Your answer"),
        max_length=2000,
        validators=[refuse_keys],
        widget=forms.Textarea(attrs={"rows": 5}),
    )


class ProfileForm(forms.ModelForm[User]):
    language = forms.ChoiceField(
        label=_("Language"),
        help_text=_("Of the pages and of the mails to you."),
        choices=settings.LANGUAGES,
    )

    class Meta:
        model = User
        fields: ClassVar[list[str]] = ["name", "language"]

    def clean_name(self) -> str:
        """Others read it beside what she writes."""
        name = str(self.cleaned_data["name"])
        refuse_keys(name)
        return name


class LeaveForm(forms.Form):
    """She types her address: nobody leaves by one wrong click."""

    email = forms.CharField(
        label=_("Your e-mail address"),
        help_text=_("Type it, so that we know you mean it."),
        widget=forms.EmailInput(attrs={"autocomplete": "off"}),
    )

    def __init__(self, *args: Any, user: User, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.user = user

    def clean_email(self) -> str:
        email = str(self.cleaned_data["email"])
        if email.strip().lower() != self.user.email.lower():
            raise forms.ValidationError(_("This is not the address of your account."))
        return email


class RejectForm(forms.Form):
    reason_code = forms.ChoiceField(label=_("Reason"), choices=Decision.Reason.choices)
    reason = forms.CharField(
        label=_("In your own words"),
        help_text=_("Sent to her instead of the sentence above."),
        max_length=1000,
        required=False,
        widget=forms.Textarea(attrs={"rows": 3}),
    )


class ReasonForm(forms.Form):
    reason = forms.CharField(label=_("Reason"), max_length=160, validators=[refuse_keys])


def _usual(count: int) -> "StrPromise":
    return format_lazy(_("Empty: what every member gets ({count})."), count=count)


class LimitsForm(ReasonForm):
    """Empty means what every member gets."""

    rpm = forms.IntegerField(
        label=_("Requests a minute"),
        help_text=_usual(settings.MEMBER_RPM),
        min_value=1,
        max_value=10_000,
        required=False,
    )
    parallel = forms.IntegerField(
        label=_("In parallel"),
        help_text=_usual(settings.MEMBER_PARALLEL),
        min_value=1,
        max_value=100,
        required=False,
    )
    field_order = ("rpm", "parallel", "reason")


class NewsForm(UpdateForm):
    """The same two texts, for other readers."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.fields["text_en"].help_text = _(
            "All members read it on their home page, for a month. It can be withdrawn, not changed."
        )
