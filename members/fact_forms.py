"""The facts of a proposed model, as an admin types them: with their units and their bounds."""

import re
from collections.abc import Iterable
from typing import Any

from django import forms
from django.utils.formats import number_format
from django.utils.translation import gettext_lazy as _

from inference.names.changes import CAPABILITIES
from inference.staff.model_form import PrettyJSON
from inference.staff.pasted_config import wrong_figures
from members.voting.facts import BOUNDS, LISTS, NUMBERS, disagreement
from members.voting.refusals import words
from nan.unreadable import PastedJSON

GROUPED = re.compile(r"\d{1,3}(?:([.,\s'’])\d{3})(?:\1\d{3})*\Z")
"""As people write them: 131.072, 7,600,000,000 or 15 200 000 000."""
CODE = re.compile(r"[A-Za-z]{2,3}(?:[-_][A-Za-z0-9]{2,8})*\Z")
MOST_CODES = 50
TOGETHER = ("parameters", "active_parameters", "weights_bytes")


class Figure(forms.CharField):
    """A whole number within the bounds of its fact; grouped digits are as good."""

    def __init__(self, fact: str, **more: Any) -> None:
        widget = forms.TextInput(attrs={"inputmode": "numeric"})
        super().__init__(max_length=30, required=False, widget=widget, **more)
        self.least, self.most = BOUNDS[fact]

    def clean(self, value: Any) -> int | None:
        text = str(super().clean(value)).strip()
        if not text:
            return None
        digits = re.sub(r"\D", "", text) if GROUPED.match(text) else text
        if not (digits.isascii() and digits.isdigit()):
            raise forms.ValidationError(_("Type a whole number: digits only, without a unit."))
        if not self.least <= int(digits) <= self.most:
            bounds = {"least": number_format(self.least), "most": number_format(self.most)}
            raise forms.ValidationError(_("From %(least)s to %(most)s.") % bounds)
        return int(digits)


class FactsForm(forms.Form):
    """Only what differs from what was looked up is kept as typed."""

    parameters = Figure(
        "parameters",
        label=_("Parameters (how many)"),
        help_text=_("The whole number: 7600000000 for 7.6 B."),
    )
    active_parameters = Figure(
        "active_parameters",
        label=_("Parameters used for each token (how many)"),
        help_text=_("Only where experts rest; the whole number."),
    )
    context = Figure("context", label=_("Context (tokens)"), help_text=_("131072 for 128k."))
    weights_bytes = Figure(
        "weights_bytes",
        label=_("Size of the weights (bytes)"),
        help_text=_("15200000000 for 15.2 GB."),
    )
    licence = forms.CharField(
        label=_("Licence"), help_text=_("As on the hub: apache-2.0."), max_length=60, required=False
    )
    revision = forms.RegexField(
        r"^[0-9a-f]{40}\Z",
        label=_("Commit"),
        required=False,
        help_text=_("All 40 characters of it."),
        error_messages={"invalid": _("A commit is 40 characters of 0 to 9 and a to f.")},
    )
    capabilities = forms.MultipleChoiceField(
        label=_("Capabilities"),
        choices=tuple(CAPABILITIES.items()),
        required=False,
        widget=forms.CheckboxSelectMultiple,
    )
    languages = forms.CharField(
        label=_("Languages"), help_text=_("Codes: es, en, ca."), max_length=300, required=False
    )
    config = PastedJSON(
        label=_("config.json"),
        help_text=_("The whole file: what fits on our servers is computed from it."),
        required=False,
        encoder=PrettyJSON,
        widget=forms.Textarea(attrs={"rows": 8, "class": "mono", "spellcheck": "false"}),
    )

    def __init__(
        self,
        *args: Any,
        looked_up: dict[str, Any],
        settled: Iterable[str] = (),
        **more: Any,
    ) -> None:
        """`settled`: what the catalogue says; typing it would change nothing."""
        super().__init__(*args, **more)
        self.looked_up = looked_up
        for name in settled:
            self.fields.pop(name, None)

    def clean_config(self) -> dict[str, Any]:
        config = self.cleaned_data["config"] or {}
        if not isinstance(config, dict):
            raise forms.ValidationError(_("This must be a JSON object: {…}."))
        if wrong := wrong_figures(config):
            raise forms.ValidationError(wrong)
        return config

    def clean_languages(self) -> list[str]:
        codes = str(self.cleaned_data["languages"]).replace(",", " ").split()
        said = self.looked_up.get("languages", [])
        if wrong := [code for code in codes if not (CODE.match(code) or code in said)]:
            words_of = _("Not a code of a language: %(codes)s. Type them as in es, en, ca.")
            raise forms.ValidationError(words_of % {"codes": ", ".join(wrong)})
        return codes[:MOST_CODES]

    def clean(self) -> dict[str, Any]:
        typed = {name: value for name, value in self.changed().items() if value is not None}
        if odd := disagreement(self.looked_up, typed):
            name, code = odd
            self.add_error(name if name in self.fields else None, words(code))
        return self.cleaned_data

    def changed(self) -> dict[str, Any]:
        """What `facts.type_in` takes: nothing for a fact that the hub has said the same of."""
        typed = {}
        for name, value in self.cleaned_data.items():
            same = (value or None) == (self.looked_up.get(name) or None)
            typed[name] = None if same else value
        return typed

    @classmethod
    def of(cls, known: dict[str, Any], **more: Any) -> "FactsForm":
        shown = {name: known.get(name) for name in (*NUMBERS, *LISTS, "licence", "revision")}
        shown["languages"] = ", ".join(known.get("languages", []))
        shown["config"] = known.get("config") or {}
        return cls(initial=shown, **more)
