import django.db.models.deletion
import django.utils.timezone
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("inference", "0012_taken_out_samples"),
    ]

    operations = [
        migrations.RemoveField(model_name="replica", name="measured"),
        migrations.CreateModel(
            name="Measurement",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("measured_with", models.CharField(max_length=64, unique=True)),
                ("kv_tokens", models.PositiveBigIntegerField(verbose_name="KV cache (tokens)")),
                (
                    "concurrent",
                    models.FloatField(verbose_name="requests of the full context at once"),
                ),
                ("gpus", models.JSONField(default=list, verbose_name="GPUs")),
                ("engine", models.CharField(max_length=60, verbose_name="engine")),
                (
                    "at",
                    models.DateTimeField(
                        default=django.utils.timezone.now, verbose_name="measured"
                    ),
                ),
                (
                    "model",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="measurements",
                        to="inference.catalogmodel",
                    ),
                ),
                (
                    "server",
                    models.ForeignKey(
                        null=True,
                        on_delete=django.db.models.deletion.SET_NULL,
                        related_name="+",
                        to="inference.server",
                    ),
                ),
            ],
            options={"verbose_name": "measurement", "verbose_name_plural": "measurements"},
        ),
    ]
