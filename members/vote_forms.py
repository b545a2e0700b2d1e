"""Forms of votes: what members propose, and what admins set."""

from typing import Any, cast

from django import forms
from django.conf import settings
from django.utils.text import format_lazy
from django.utils.translation import gettext_lazy as _

from inference.models import CatalogModel, Slot
from members.models.votes import SLUG
from members.voting import rounds
from nan.leaks import refuse_keys
from nan.moments import MomentField


def _slot() -> "forms.ModelChoiceField[Slot]":
    """One that serves something."""
    return forms.ModelChoiceField(
        label=_("For what"),
        queryset=Slot.objects.exclude(model=None).order_by("number"),
        empty_label=None,
        to_field_name="name",
    )


def _when(label: Any) -> MomentField:
    zone = settings.TIME_ZONE
    return MomentField(label=label, help_text=format_lazy(_("In the time of {zone}."), zone=zone))


def _text(label: Any, *, rows: int = 3, longest: int = 1000, **more: Any) -> forms.CharField:
    """Others read it."""
    return forms.CharField(
        label=label,
        max_length=longest,
        validators=[refuse_keys],
        widget=forms.Textarea(attrs={"rows": rows}),
        **more,
    )


class ProposeForm(forms.Form):
    slot = _slot()
    repo = forms.CharField(
        label=_("Hugging Face repository"),
        help_text=_("Its address, or owner/name as in Qwen/Qwen3-8B."),
        max_length=300,
        widget=forms.TextInput(attrs={"autocapitalize": "none", "spellcheck": "false"}),
    )
    reason = _text(
        _("Why this one?"),
        rows=5,
        help_text=_("What you would use it for, and what is better than now. Members read it."),
    )

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        slots = list(Slot.objects.exclude(model=None).order_by("number")[:2])
        self.only = slots[0] if len(slots) == 1 else None
        if self.only:
            del self.fields["slot"]

    @property
    def chosen(self) -> Slot:
        found: Slot = self.only or self.cleaned_data["slot"]
        return found


# -- Admins -------------------------------------------------------------------------------------
class RulesForm(forms.Form):
    quorum_percent = forms.IntegerField(
        label=_("Quorum (percent of the roll)"),
        min_value=1,
        max_value=100,
        initial=rounds.QUORUM_PERCENT,
    )
    public_result = forms.BooleanField(
        label=_("Show the result to everybody: how many voted and who won, never ballots"),
        required=False,
    )


class PrepareForm(RulesForm):
    slot = _slot()
    slug = forms.CharField(
        label=_("Name"),
        help_text=_("As in 2026-Q4. It is part of the address and can't be changed."),
        max_length=40,
        validators=[SLUG],
    )
    field_order = ("slot", "slug", "quorum_percent", "public_result")

    def clean_slug(self) -> str:
        slug = str(self.cleaned_data["slug"])
        if rounds.reserved(slug):
            raise forms.ValidationError(
                _("These pages need this name for themselves. Choose another.")
            )
        return slug


class ScheduleForm(forms.Form):
    opens_at = _when(_("Opens"))
    closes_at = _when(_("Closes"))


class OpenForm(forms.Form):
    closes_at = _when(_("Closes"))


class ExtendForm(forms.Form):
    closes_at = _when(_("New deadline"))
    reason = forms.CharField(label=_("Reason"), max_length=300, validators=[refuse_keys])


class DeclineForm(forms.Form):
    reason = _text(_("Reason"), help_text=_("Sent to the member who proposed it."))


class RatifyForm(forms.Form):
    model = forms.ModelChoiceField(
        label=_("Entry of the catalogue"), queryset=CatalogModel.objects.none(), empty_label=None
    )
    start_at = _when(_("The rotation starts"))
    announcement_es = _text(_("Announcement in Spanish"), rows=5, longest=2000)
    announcement_en = _text(_("Announcement in English"), rows=5, longest=2000)
    despite_tie = forms.BooleanField(
        label=_("The result is a tie, and the community wants this plan all the same"),
        required=False,
    )

    def __init__(self, *args: Any, repo: str, tie: bool, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        entries = CatalogModel.objects.offered().filter(repo__iexact=repo).order_by("-pk")
        cast("forms.ModelChoiceField[CatalogModel]", self.fields["model"]).queryset = entries
        if not tie:
            del self.fields["despite_tie"]
