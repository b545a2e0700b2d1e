#!/usr/bin/env python
import os
import sys

from nan.env import Unset

if __name__ == "__main__":
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "nan.settings")
    from django.core.management import execute_from_command_line

    try:
        execute_from_command_line(sys.argv)
    except Unset as unset:
        sys.exit(f"{unset}\nOn a machine with the local stack: eval $(python -m nan.local env)")
