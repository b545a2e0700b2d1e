from django.apps import AppConfig
from django.utils.translation import gettext_lazy as _


class MembersConfig(AppConfig):
    name = "members"
    verbose_name = _("Members")

    def ready(self) -> None:
        from inference.swaps.plan import HELD_BY
        from members import metrics
        from members.voting.rounds import holds_swaps
        from nan.ops import tell

        tell(metrics.collect)
        HELD_BY.append(holds_swaps)
