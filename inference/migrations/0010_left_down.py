from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('inference', '0009_api_samples'),
    ]

    operations = [
        migrations.AddField(
            model_name='swapreplica',
            name='left_down',
            field=models.JSONField(default=dict, verbose_name='why the old model did not come back'),
        ),
    ]
