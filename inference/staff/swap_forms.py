"""Planning a swap, in two steps: which slot gets which model, then how and when."""

from typing import Any

from django import forms
from django.conf import settings
from django.urls import reverse_lazy
from django.utils import timezone
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from inference.fleet.words import words
from inference.models import CatalogModel, Slot
from inference.swaps.plan import FARTHEST
from nan.leaks import refuse_keys
from nan.moments import MomentField

AT_DEADLINE = (
    (
        "abort",
        gettext_lazy("Stop the swap: they finish, the old model stays, and the page says so."),
    ),
    (
        "cut",
        gettext_lazy("Cut them off and go on: their clients get an error and have to ask again."),
    ),
)


class ChoiceForm(forms.Form):
    """Sent by GET: choosing changes nothing, and the preview has an address.

    Offers what can be had for the slot that is chosen; what can't, sent all the same, is refused
    with the reason.
    """

    slot = forms.ModelChoiceField(
        label=gettext_lazy("Slot"),
        queryset=Slot.objects.exclude(model=None),
        empty_label=None,
        to_field_name="name",
        widget=forms.Select(
            attrs={
                "hx-get": reverse_lazy("staff_swap_new"),
                "hx-vals": '{"choosing": "1"}',
                "hx-target": "#id_model",
                "hx-select": "#id_model",
                "hx-swap": "outerHTML",
                # Else a model that is chosen before the answer comes is lost without a word.
                "hx-disabled-elt": "#id_model",
            }
        ),
    )
    model = forms.ModelChoiceField(
        label=gettext_lazy("New model"),
        queryset=CatalogModel.objects.offered(),
        empty_label=None,
        to_field_name="name",
    )

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        slots = list(Slot.objects.exclude(model=None))
        chosen = self["slot"].value()
        slot = next((slot for slot in slots if slot.name == chosen), slots[0] if slots else None)
        models = models_for(slot) if slot else []
        model = self.fields["model"]
        model.widget.choices = [(model.name, str(model)) for model in models]
        if slot and not models:
            model.help_text = _("The catalogue has no other model of this kind.")

    def clean(self) -> dict[str, Any]:
        found = super().clean() or self.cleaned_data
        slot, model = found.get("slot"), found.get("model")
        if slot and model and slot.model_id == model.pk:
            self.add_error("model", _("The slot serves this model already."))
        elif slot and model and slot.kind != model.kind:
            self.add_error("model", _("This model is of another kind than the slot."))
        return found


def models_for(slot: Slot) -> list[CatalogModel]:
    offered = CatalogModel.objects.offered().filter(kind=slot.kind)
    return [model for model in offered if model.pk != slot.model_id]


class PlanForm(forms.Form):
    reason = forms.CharField(
        label=gettext_lazy("Reason"),
        help_text=gettext_lazy("For the other admins, and for the record."),
        max_length=200,
        required=False,
        validators=[refuse_keys],
    )
    at_deadline = forms.ChoiceField(
        label=gettext_lazy("If requests still run when the time to drain is over"),
        choices=AT_DEADLINE,
        widget=forms.RadioSelect,
        initial="abort",
    )
    drain_minutes = forms.IntegerField(
        label=gettext_lazy("Longest time to drain a replica (minutes)"),
        min_value=0,
        max_value=60,
        initial=15,
    )
    watch_seconds = forms.IntegerField(
        label=gettext_lazy("Watch each replica before the next (seconds)"),
        help_text=gettext_lazy(
            "Errors, hangs, and first tokens that come far later than from the slot's other"
            " replicas: a bad one takes the swap back. One in doubt is watched for up to three"
            " minutes more."
        ),
        min_value=0,
        max_value=3600,
        initial=120,
    )
    start_at = MomentField(label=gettext_lazy("Start at"), required=False)

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.fields["start_at"].help_text = _(
            "In the time of %(zone)s. Empty: as soon as it is approved."
        ) % {"zone": settings.TIME_ZONE}

    def clean_start_at(self) -> Any:
        start_at = self.cleaned_data["start_at"]
        if start_at and start_at < timezone.now():
            raise forms.ValidationError(_("That time is over. Choose a later one, or none."))
        if start_at and start_at > timezone.now() + FARTHEST:
            raise forms.ValidationError(str(words("swap_too_late")))
        return start_at

    @property
    def choice(self) -> dict[str, Any]:
        """What `swaps.plan` takes."""
        found = dict(self.cleaned_data)
        minutes = found.pop("drain_minutes")
        return {**found, "drain_seconds": minutes * 60}
