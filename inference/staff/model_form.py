"""The catalogue's form: a model, pinned, with what an engine must be told. Nothing that an engine
or a GPU server would refuse is saved."""

import json
from typing import Any, ClassVar

from django import forms
from django.core.validators import MaxValueValidator
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from inference.gpu import flags as engine_flags
from inference.gpu import spec
from inference.models import CatalogModel, Kind, PublicName, Slot
from inference.staff import in_use
from inference.staff.pasted_config import wrong_figures
from nan import stale
from nan.unreadable import PastedJSON

BIGGEST_CONFIG = 256 * 1024
CAPABILITIES = (
    ("tools", gettext_lazy("tools")),
    ("reasoning", gettext_lazy("reasoning")),
    ("vision", gettext_lazy("vision")),
)
TAKEN = ("add",)
# The engine gets these from other fields of the entry.
FROM_FIELDS = {"max-model-len", "tensor-parallel-size"}
MOST = {"weights_mib": 100_000_000, "memory_mib": 16_000_000, "gpus_needed": 16}
"""What a GPU server takes (`inference.gpu.spec`)."""
FLAGS = sorted(set(engine_flags.ALLOWED) - FROM_FIELDS)
AS_JSON = ("config", "flags", "environment")
VARIABLES = sorted(spec.ENVIRONMENT)


class PrettyJSON(json.JSONEncoder):
    def __init__(self, **options: Any) -> None:
        super().__init__(**{**options, "indent": 2, "ensure_ascii": False})


def _json_field(label: Any, help_text: Any, rows: int) -> PastedJSON:
    """What was typed stays as it was typed, also when it is no JSON."""
    return PastedJSON(
        label=label,
        help_text=help_text,
        required=False,
        initial=dict,
        encoder=PrettyJSON,
        widget=forms.Textarea(attrs={"rows": rows, "class": "mono", "spellcheck": "false"}),
        error_messages={"invalid": gettext_lazy("This is not JSON. Nothing was saved; look for a"
                                                " missing quote, comma or bracket.")},
    )  # fmt: skip


class ModelForm(forms.ModelForm[CatalogModel]):
    capabilities = forms.MultipleChoiceField(
        label=gettext_lazy("Capabilities"),
        help_text=gettext_lazy("Each is proven by the smoke test before members get the model."),
        choices=CAPABILITIES,
        required=False,
        widget=forms.CheckboxSelectMultiple,
    )
    config = _json_field(
        gettext_lazy("config.json"),
        gettext_lazy("Paste the file of the repository at this commit: the estimate needs it."),
        8,
    )
    flags = _json_field(
        gettext_lazy("Engine flags"),
        gettext_lazy('Without dashes, as in {"seed": 1}. What is accepted stands below.'),
        6,
    )
    environment = _json_field(
        gettext_lazy("Engine environment"),
        gettext_lazy('As in {"VLLM_CPU_KVCACHE_SPACE": "4"}. What is accepted stands below.'),
        3,
    )

    class Meta:
        model = CatalogModel
        fields: ClassVar[list[str]] = [
            "name", "title", "kind", "repo", "revision", "licence", "config", "weights_mib",
            "context_length", "max_output", "capabilities", "gpus_needed", "memory_mib", "flags",
            "environment", "load_seconds", "offered",
        ]  # fmt: skip
        help_texts: ClassVar[dict[str, Any]] = {
            "memory_mib": gettext_lazy(
                "So much must be free on each GPU before an engine is started. Without a GPU: 0,"
                " then nothing is checked."
            ),
        }

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        for name, most in MOST.items():
            self.fields[name].validators.append(MaxValueValidator(most))
        if self.instance.pk:
            self.fields["name"].disabled = True
            flags = self.instance.flags.items()
            self.initial["flags"] = {
                name: value for name, value in flags if name not in FROM_FIELDS
            }
        self.seen = stale.digest(self.instance, self.Meta.fields)
        self.changed = stale.changed_since(self.data, self.instance, self.Meta.fields)
        self.used_by = in_use.users(self.instance)
        self.refused = self._fix() if self.used_by else []

    def _fix(self) -> list[str]:
        """What engines were told is only shown. Returns what was sent to change it anyway."""
        sent = [name for name in in_use.FIXED if name in self.data and self._differs(name)]
        for name in set(in_use.FIXED) - set(sent):
            self.fields[name].disabled = True
        return sent

    @property
    def changes(self) -> list[str]:
        """Django counts a field of JSON that is only shown among the changed ones."""
        return [name for name in self.changed_data if not self.fields[name].disabled]

    def _differs(self, name: str) -> bool:
        return self.fields[name].has_changed(self.initial.get(name), self[name].data)

    def clean_name(self) -> str:
        name = str(self.cleaned_data["name"])
        if name in TAKEN:
            raise forms.ValidationError(
                _("This word is an address of these pages. Choose another.")
            )
        if self.instance.pk is None and name_is_called(name):
            raise forms.ValidationError(
                _("A slot answers to this name already, so a model can't have it. Choose another.")
            )
        return name

    def clean_config(self) -> dict[str, Any]:
        config = _record(self.cleaned_data["config"])
        if len(json.dumps(config)) > BIGGEST_CONFIG:
            raise forms.ValidationError(_("This is too long for a config.json."))
        if wrong := wrong_figures(config):
            raise forms.ValidationError(wrong)
        return config

    def clean_flags(self) -> dict[str, Any]:
        """Each that is wrong is named, with what it may be."""
        flags = _record(self.cleaned_data["flags"])
        wrong = [
            problem for name, value in flags.items() if (problem := _flag_problem(name, value))
        ]
        if wrong:
            raise forms.ValidationError(wrong)
        return flags

    def clean_environment(self) -> dict[str, Any]:
        environment = _record(self.cleaned_data["environment"])
        wrong = [
            _variable_problem(name, value)
            for name, value in environment.items()
            if not _variable_accepted(name, value)
        ]
        if wrong:
            raise forms.ValidationError(wrong)
        return environment

    def clean(self) -> dict[str, Any]:
        found = super().clean() or self.cleaned_data
        if self.changed:
            self._tell_what_changed()
        for name in self.refused:
            self.add_error(
                name,
                _("A slot has this model, so this can't be changed: add a new entry, swap to it."),
            )
        if found.get("kind") == Kind.EMBEDDING and found.get("capabilities"):
            self.add_error("capabilities", _("A model for embeddings has none of these."))
        longest, context = found.get("max_output"), found.get("context_length")
        if longest and context and longest > context:
            self.add_error("max_output", _("An answer can't be longer than the context."))
        if found.get("gpus_needed") and not found.get("memory_mib"):
            self.add_error(
                "memory_mib",
                _("On a GPU this must be more than 0: how much must be free before it is started."),
            )
        return found

    def _tell_what_changed(self) -> None:
        """Saved once more, what stands in the form counts: then it was decided with open eyes."""
        self.add_error(None, in_use.changed_meanwhile(self.instance))
        for name in self.fields:
            if not self.fields[name].disabled and self._differs(name) and name not in AS_JSON:
                said = {"value": self.initial.get(name)}
                self.add_error(name, _("Saved meanwhile: %(value)s") % said)


def added_already(form: ModelForm) -> CatalogModel | None:
    """The entry that this form has added before, as it stands in it: a button pressed twice."""
    there = CatalogModel.objects.filter(name=form.data.get("name", "")).first()
    return there if there and not ModelForm(form.data, instance=there).changes else None


def name_is_called(name: str) -> bool:
    """Whether the API has or had it for a slot: two things of one name would get each other's
    requests."""
    called = PublicName.objects.filter(name=name).exists()
    return called or Slot.objects.filter(name=name).exists()


def _record(value: Any) -> dict[str, Any]:
    if value is None:
        return {}
    if not isinstance(value, dict):
        raise forms.ValidationError(_("This must be a JSON object: {…}."))
    return value


def _flag_problem(name: str, value: Any) -> str:
    said = {"name": name, "value": json.dumps(value)}
    if name in FROM_FIELDS:
        return _("%(name)s comes from the fields of this form.") % said
    if name not in engine_flags.ALLOWED:
        return _("%(name)s is not a flag that servers accept.") % said
    if name == "speculative-config" and isinstance(value, dict) and "model" in value:
        return (
            _(
                "%(name)s can't have a model: draft weights of their own are neither fetched nor"
                " checked. Use a method that needs none, such as mtp or ngram."
            )
            % said
        )
    if not engine_flags.accepted(name, value):
        return _("%(name)s can't be %(value)s.") % said
    return ""


def _variable_problem(name: str, value: Any) -> str:
    said = {"name": name, "value": value}
    if not isinstance(value, str) and _variable_accepted(name, json.dumps(value)):
        return _('%(name)s must stand in quotes: "%(value)s".') % {
            **said,
            "value": json.dumps(value),
        }
    return _("%(name)s=%(value)s is not allowed.") % said


def _variable_accepted(name: str, value: Any) -> bool:
    """By the same code that the GPU server asks, with everything else as it should be."""
    try:
        spec.EngineSpec(
            instance="r1-g1",
            model="owner/name",
            revision="0" * 40,
            names=("name",),
            host="127.0.0.1",
            port=8101,
            gpus=(),
            flags={},
            environment={name: value},
            shutdown_timeout=1,
            memory_mib=0,
            disk_mib=0,
        )
    except spec.SpecError:
        return False
    return True
