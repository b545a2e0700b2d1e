"""Forms of servers and replicas."""

from collections.abc import Sequence
from typing import Any, ClassVar, cast

from django import forms
from django.core.validators import RegexValidator
from django.db import IntegrityError, transaction
from django.utils.functional import Promise
from django.utils.translation import gettext_lazy as _

from inference.fleet.errors import FleetRefused
from inference.fleet.words import said
from inference.models import CatalogModel, PublicName, Replica, Server, Slot
from inference.staff.server_page import Gpu
from nan import stale

TAKEN = ("add", "join")
REFUSED_FIELDS = {
    "gpus_differ": "gpus",
    "gpu_in_use": "gpus",
    "gpu_unknown": "gpus",
    "port_in_use": "port",
    "pool_full": "slot",
}
SERVER_NAME = RegexValidator(
    r"^[a-z0-9][a-z0-9-]{0,39}\Z", _("Lower-case letters, digits and hyphens; at most 40.")
)
AT_DEADLINE = (
    ("cut", _("cut off what still runs")),
    ("abort", _("leave it in service and say so")),
)


class InviteForm(forms.Form):
    name = forms.CharField(
        label=_("Name of the server"),
        help_text=_("As in gpu-2. Its queue is called after it; it can't be changed later."),
        max_length=40,
        validators=[SERVER_NAME],
    )
    seats = forms.IntegerField(
        label=_("Seats"),
        help_text=_("How many members it carries. The waitlist fills them."),
        min_value=0,
        max_value=10_000,
        initial=0,
    )

    def clean_name(self) -> str:
        """Of those that never reported, `inference.fleet.servers.invite` knows who invited them."""
        name = str(self.cleaned_data["name"])
        if name in TAKEN:
            raise forms.ValidationError(
                _("This word is an address of these pages. Choose another.")
            )
        if Server.objects.filter(name=name, reported_at__isnull=False).exists():
            raise forms.ValidationError(_("There is a server of this name already."))
        return name


class SeatsForm(forms.ModelForm[Server]):
    class Meta:
        model = Server
        fields: ClassVar[list[str]] = ["seats"]

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.seen = stale.digest(self.instance, self.Meta.fields)
        self.stale = stale.changed_since(self.data, self.instance, self.Meta.fields)

    def clean_seats(self) -> int:
        """Whoever sends what is there already has nothing to decide."""
        seats = int(self.cleaned_data["seats"])
        if self.stale and "seats" in self.changed_data:
            raise forms.ValidationError(
                _(
                    "Changed meanwhile to %(seats)s. Nothing was saved; look at your number again,"
                    " then save."
                ),
                params={"seats": self.initial["seats"]},
            )
        return seats


class TakeOutForm(forms.Form):
    drain_minutes = forms.IntegerField(
        label=_("Wait at most (minutes)"),
        help_text=_("For requests that are running. No new ones arrive meanwhile."),
        min_value=0,
        max_value=60,
        initial=15,
    )
    at_deadline = forms.ChoiceField(
        label=_("If some still run then"),
        choices=AT_DEADLINE,
        widget=forms.RadioSelect,
        initial="cut",
    )

    @property
    def choice(self) -> dict[str, Any]:
        """What both use cases take."""
        found = self.cleaned_data
        return {
            "drain_seconds": found["drain_minutes"] * 60,
            "at_deadline": found["at_deadline"],
        }


class ReplicaForm(forms.Form):
    """Where a new replica stands on one server."""

    slot = forms.ModelChoiceField(label=_("Slot"), queryset=Slot.objects.all(), empty_label=None)
    gpus = forms.TypedMultipleChoiceField(
        label=_("GPUs"),
        help_text=_("All that it takes together. None: it runs on the CPU."),
        coerce=int,
        required=False,
        widget=forms.CheckboxSelectMultiple,
    )
    port = forms.IntegerField(label=_("Port"), min_value=1024, max_value=65535)

    def __init__(self, *args: Any, server: Server, gpus: Sequence[Gpu], **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.server = server
        choices = [(gpu.index, f"{gpu.index}: {gpu.name}") for gpu in gpus]
        cast(forms.TypedMultipleChoiceField, self.fields["gpus"]).choices = choices
        if not choices:
            del self.fields["gpus"]
        self.fields["port"].initial = _free_port(server)

    def clean_port(self) -> int:
        port = int(self.cleaned_data["port"])
        if self.server.replicas.filter(port=port).exists():
            raise forms.ValidationError(_("Another replica on this server has this port."))
        return port

    def add_refusal(self, refusal: FleetRefused) -> None:
        """Beside the field that it is about, where the server's form has it."""
        field = REFUSED_FIELDS.get(refusal.code, "")
        self.add_error(field if field in self.fields else None, said(refusal))

    @property
    def is_there(self) -> bool:
        """It was added as it stands in the form: a button pressed twice."""
        slot, gpus = self.cleaned_data.get("slot"), self.cleaned_data.get("gpus", [])
        there = self.server.replicas.filter(slot=slot, gpus=sorted(gpus))
        return str(self.data.get("port")) in {str(other.port) for other in there}


def _free_port(server: Server) -> int:
    taken = set(Replica.objects.filter(server=server).values_list("port", flat=True))
    return next(port for port in range(8101, 8101 + len(taken) + 1) if port not in taken)


class FetchForm(forms.Form):
    model = forms.ModelChoiceField(
        label=_("Model"), queryset=CatalogModel.objects.offered(), empty_label=None
    )


class PutInForm(forms.Form):
    """A slot that serves nothing yet gets its first model here; later ones come by swaps."""

    model = forms.ModelChoiceField(
        label=_("Model"), queryset=CatalogModel.objects.none(), empty_label=None
    )

    def __init__(self, *args: Any, slot: Slot, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        if slot.model_id:
            del self.fields["model"]
            return
        field = cast(forms.ModelChoiceField[CatalogModel], self.fields["model"])
        field.queryset = CatalogModel.objects.offered().filter(kind=slot.kind)


class SlotForm(forms.ModelForm[Slot]):
    class Meta:
        model = Slot
        fields: ClassVar[list[str]] = [
            "name", "title", "kind", "number", "least_concurrent", "least_context",
        ]  # fmt: skip
        help_texts: ClassVar[dict[str, Promise]] = {
            "number": _("Its place in HAProxy; each has room for one slot."),
        }
        error_messages: ClassVar[dict[str, dict[str, Promise]]] = {
            "name": {"unique": _("Another slot has this name. Choose another.")},
            "number": {"unique": _("Another slot has this place in the pool. Choose another.")},
        }

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        if self.instance.pk is None:
            self.initial["number"] = Slot.free_number()

    def clean_name(self) -> str:
        name = str(self.cleaned_data["name"])
        models = CatalogModel.objects.filter(name=name)
        if models.exists() or PublicName.objects.filter(name=name, model__isnull=False).exists():
            raise forms.ValidationError(
                _("Members call a model by this name, so a slot can't have it. Choose another.")
            )
        return name

    @property
    def is_there(self) -> bool:
        """It was added as it stands in the form: a button pressed twice."""
        there = Slot.objects.filter(name=self.data.get("name", "")).first()
        return there is not None and not SlotForm(self.data, instance=there).has_changed()


def saved_alone(form: forms.ModelForm[Any]) -> bool:
    """False for a form that is refused, also by what somebody else has saved since it was looked
    at: of two at the same moment, one is told what the other one has taken."""
    try:
        with transaction.atomic():
            return form.is_valid() and form.save() is not None
    except IntegrityError:
        form.instance.pk = None
        form.full_clean()
        return False
