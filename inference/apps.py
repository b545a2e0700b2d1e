from django.apps import AppConfig
from django.utils.translation import gettext_lazy as _


class InferenceConfig(AppConfig):
    name = "inference"
    verbose_name = _("Inference")

    def ready(self) -> None:
        from inference import metrics
        from inference.status import metrics as status
        from nan.ops import tell

        tell(metrics.collect)
        tell(status.collect)
