"""Settings: one file, every value that differs between hosts comes from the environment.

.env.example lists the variables. `manage.py check --deploy` says what is unsafe or unset.
"""

import secrets
from pathlib import Path
from urllib.parse import urlsplit

import django_stubs_ext
from csp.constants import NONE, SELF
from django.utils.translation import gettext_lazy as _
from redis.backoff import NoBackoff
from redis.retry import Retry

from nan import env

# Type checkers know Django's forms and admin classes as generic; from here on they are at run time.
django_stubs_ext.monkeypatch()

BASE_DIR = Path(__file__).resolve().parent.parent

# -- Who we are -------------------------------------------------------------------------------
LOCAL_STACK = env.flag("NAN_LOCAL")
STATE_DIR = Path(env.text("NAN_STATE_DIR", str(BASE_DIR / ".nan")))
SITE_URL = env.text("SITE_URL", "http://127.0.0.1:8000").rstrip("/")
API_URL = env.text("API_URL", "http://127.0.0.1:8080").rstrip("/")
PUBLIC_MODEL = env.text("PUBLIC_MODEL", "nan")
CONTACT_EMAIL = env.text("CONTACT_EMAIL", "admins@localhost")

# `gpu`: a worker on a GPU server. It has no database, serves no page and signs nothing.
ROLE = env.text("NAN_ROLE", "app")
GPU_HOST = ROLE == "gpu"
SECRET_KEY = secrets.token_urlsafe(50) if GPU_HOST else env.text("DJANGO_SECRET_KEY")
# Retired keys, newest first: sessions and mailed links of theirs stay valid until they are removed.
SECRET_KEY_FALLBACKS = env.text("DJANGO_SECRET_KEY_FALLBACKS", "").split()
DEBUG = env.flag("DJANGO_DEBUG")
ALLOWED_HOSTS = [urlsplit(SITE_URL).hostname or "", *env.text("EXTRA_HOSTS", "127.0.0.1").split()]
CSRF_TRUSTED_ORIGINS = [SITE_URL]
HTTPS = SITE_URL.startswith("https://")

# -- What members are promised (requests a minute, requests in parallel) -----------------------
MEMBER_RPM = env.number("MEMBER_RPM", 100)
MEMBER_PARALLEL = env.number("MEMBER_PARALLEL", 5)
UNDO_SECONDS = env.number("UNDO_SECONDS", 60 if LOCAL_STACK else 600)
ROTATION_OVERLAP_SECONDS = env.number("ROTATION_OVERLAP_SECONDS", 24 * 3600)
REVEAL_SECONDS = 600

# -- The gateway's admin API: set on the gateway worker only -----------------------------------
GATEWAY_URL = env.text("GATEWAY_URL", "http://127.0.0.1:4000").rstrip("/")
LITELLM_MASTER_KEY = env.text("LITELLM_MASTER_KEY", "")
# Its counters, which pages and the worker only read. LiteLLM uses the first database.
GATEWAY_REDIS_URL = "" if GPU_HOST else env.redis("REDIS_URL", database=0)

# -- The fleet: read by the fleet worker only, except where a page shows it ---------------------
POOL_DIR = Path(env.text("POOL_DIR", str(STATE_DIR / "edge")))  # HAProxy's: socket, maps, state
# Where the gateway finds the pool; each slot is a path below it.
POOL_URL = env.text("POOL_URL", "http://127.0.0.1:8090").rstrip("/")
# The edge's own: how long it holds a request that no engine can take. Here a page says it.
POOL_QUEUE_SECONDS = env.number("POOL_QUEUE_SECONDS", 60)
ENGINE_API_KEY = env.text("ENGINE_API_KEY", "")
# Two people look at a swap before it runs. A community with one admin sets 0.
SWAP_SECOND_ADMIN = env.flag("SWAP_SECOND_ADMIN", default=True)
RETIRED_NAME_DAYS = env.number("RETIRED_NAME_DAYS", 14)
# From the first SIGTERM to SIGKILL; the engine's own shutdown timeout is shorter.
ENGINE_KILL_SECONDS = env.number("ENGINE_KILL_SECONDS", 60)
MEMORY_SECONDS = env.number("MEMORY_SECONDS", 120)  # for a GPU to be free after its engine ended
# How GPU servers reach Redis: they get it when they join. Over the VPN, with a password.
GPU_REDIS_URL = env.text("GPU_REDIS_URL", "")

# -- Alerts: who hears of them besides the admins' mail. The address itself is a secret. ----------
ALERT_WEBHOOK_URL = env.text("ALERT_WEBHOOK_URL", "")

# -- Probes: the calls that examples depend on, made like a member's; 0: only when an admin asks.
PROBES = env.flag("PROBES", default=True)
PROBES_HOUR = env.number("PROBES_HOUR", 4)  # of the night, in Madrid

# -- Votes: where proposed models are looked up -------------------------------------------------
HF_ENDPOINT = env.text("HF_ENDPOINT", "https://huggingface.co").rstrip("/")
HF_TOKEN = env.text("HF_TOKEN", "")  # for repositories that ask for a consent; a secret

INSTALLED_APPS = [
    "members",
    "inference",
    "nan.apps.NanConfig",
    "nan.apps.NanAdminConfig",
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django.contrib.sessions",
    "django.contrib.messages",
    "whitenoise.runserver_nostatic",
    "django.contrib.staticfiles",
    "django.contrib.humanize",
    "django.forms",
    "django.contrib.postgres",
    "allauth",
    "allauth.account",
    "allauth.socialaccount",
    "allauth.socialaccount.providers.github",
    "allauth.mfa",
    "allauth.usersessions",
    "django_htmx",
    "template_partials",
    "csp",
]

MIDDLEWARE = [
    "django.middleware.security.SecurityMiddleware",
    "csp.middleware.CSPMiddleware",
    "whitenoise.middleware.WhiteNoiseMiddleware",
    "nan.anonymous.AnonymousPagesMiddleware",
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.middleware.locale.LocaleMiddleware",
    "django.middleware.common.CommonMiddleware",
    "nan.unreadable.NoNulMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "nan.language.ProfileLanguageMiddleware",
    "django.contrib.messages.middleware.MessageMiddleware",
    "django.middleware.clickjacking.XFrameOptionsMiddleware",
    "allauth.account.middleware.AccountMiddleware",
    "allauth.usersessions.middleware.UserSessionsMiddleware",
    "django_htmx.middleware.HtmxMiddleware",
]

ROOT_URLCONF = "nan.urls"
WSGI_APPLICATION = "nan.wsgi.application"
FORM_RENDERER = "django.forms.renderers.TemplatesSetting"

TEMPLATES = [
    {
        "BACKEND": "django.template.backends.django.DjangoTemplates",
        "DIRS": [BASE_DIR / "templates"],
        "APP_DIRS": True,
        "OPTIONS": {
            "context_processors": [
                "django.template.context_processors.request",
                "django.contrib.auth.context_processors.auth",
                "django.contrib.messages.context_processors.messages",
                "nan.context.site",
            ],
        },
    }
]

# -- Data -------------------------------------------------------------------------------------
DATABASES = {
    "default": {"ENGINE": "django.db.backends.dummy"}
    if GPU_HOST
    else env.postgres("DATABASE_URL", pool_size=env.number("DB_POOL_SIZE", 4))
}
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"
CACHES = {
    "default": {
        "BACKEND": "nan.cache.FailOpenRedisCache",
        "LOCATION": env.redis("REDIS_URL", database=1),
        "KEY_PREFIX": "nan",
        # A miss at once is better than a page that waits for several attempts.
        "OPTIONS": {
            "socket_connect_timeout": 1,
            "socket_timeout": 2,
            "retry": Retry(NoBackoff(), 1),
        },
    }
}
SESSION_ENGINE = "django.contrib.sessions.backends.db"

# -- Work -------------------------------------------------------------------------------------
CELERY_BROKER_URL = env.redis("REDIS_URL", database=0)
CELERY_TASK_IGNORE_RESULT = True
CELERY_TASK_ACKS_LATE = True
CELERY_TASK_REJECT_ON_WORKER_LOST = True
CELERY_WORKER_PREFETCH_MULTIPLIER = 1
CELERY_WORKER_HIJACK_ROOT_LOGGER = False
CELERY_WORKER_SEND_TASK_EVENTS = False
CELERY_TASK_DEFAULT_QUEUE = "default"
CELERY_TASK_ROUTES = {
    "inference.tasks.gateway_*": {"queue": "gateway"},
    "inference.tasks.fleet_*": {"queue": "fleet"},
}
CELERY_BROKER_CONNECTION_RETRY_ON_STARTUP = True
CELERY_BROKER_CONNECTION_MAX_RETRIES = None
CELERY_BROKER_TRANSPORT_OPTIONS = {
    "socket_connect_timeout": 2,
    "socket_timeout": 10,
    "visibility_timeout": 120,
}
# Name, task, every so many seconds, and after how many a message that nobody took is dropped.
CELERY_BEAT_SCHEDULE = {
    name: {"task": task, "schedule": seconds, "options": {"expires": expires}}
    for name, task, seconds, expires in (
        ("mails", "members.tasks.send_due_mails", 10, 30),
        ("keys", "inference.tasks.gateway_advance_keys", 5, 20),
        ("fleet", "inference.tasks.fleet_pass", 5, 10),
        ("servers", "inference.tasks.fleet_ask_servers", 5, 5),
        ("samples", "inference.tasks.fleet_sample", 30, 20),
        ("thinning", "inference.tasks.thin_samples", 600, 600),
        ("names", "inference.tasks.gateway_publish_names", 15, 15),
        ("rotations", "members.tasks.tell_rotations", 60, 60),
        ("alerts", "members.tasks.mail_alerts", 10, 10),
        ("webhook", "members.tasks.call_webhook", 10, 10),
        ("votes", "members.tasks.advance_votes", 5, 5),
        ("facts", "members.tasks.look_up_facts", 15, 15),
        ("probes", "inference.tasks.make_probes", 15, 15),
        ("usage", "inference.tasks.gateway_pull_usage", 20, 20),
        ("reconcile", "inference.tasks.gateway_reconcile_keys", 180, 170),
    )
}

# -- Accounts ---------------------------------------------------------------------------------
AUTH_USER_MODEL = "members.User"
AUTHENTICATION_BACKENDS = ["allauth.account.auth_backends.AuthenticationBackend"]
AUTH_PASSWORD_VALIDATORS = [
    {"NAME": "django.contrib.auth.password_validation.UserAttributeSimilarityValidator"},
    {
        "NAME": "django.contrib.auth.password_validation.MinimumLengthValidator",
        "OPTIONS": {"min_length": 10},
    },
    {"NAME": "django.contrib.auth.password_validation.CommonPasswordValidator"},
]
LOGIN_URL = "account_login"
LOGIN_REDIRECT_URL = "home"
ACCOUNT_ADAPTER = "members.accounts.AccountAdapter"
SOCIALACCOUNT_ADAPTER = "members.accounts.SocialAccountAdapter"
ACCOUNT_USER_MODEL_USERNAME_FIELD = None
ACCOUNT_LOGIN_METHODS = {"email"}
ACCOUNT_SIGNUP_FIELDS = ["email*", "password1*"]
ACCOUNT_EMAIL_VERIFICATION = "mandatory"
ACCOUNT_PREVENT_ENUMERATION = "strict"
ACCOUNT_CHANGE_EMAIL = True
ACCOUNT_CONFIRM_EMAIL_ON_GET = False
ACCOUNT_LOGIN_ON_EMAIL_CONFIRMATION = True
ACCOUNT_EMAIL_NOTIFICATIONS = True
ACCOUNT_LOGOUT_ON_PASSWORD_CHANGE = False
ACCOUNT_SESSION_REMEMBER = True
ACCOUNT_REAUTHENTICATION_METHODS = ("password", "mfa")  # no mail of ours carries a code
ACCOUNT_DEFAULT_HTTP_PROTOCOL = "https" if HTTPS else "http"
ALLAUTH_TRUSTED_PROXY_COUNT = 1
# Not per address: mails to one address are limited in the outbox, and nobody is locked out.
ACCOUNT_RATE_LIMITS = {"reset_password": "20/m/ip", "confirm_email": None}
ACCOUNT_FORMS = {"signup": "members.addresses.SignUpForm"}
MFA_SUPPORTED_TYPES = ["totp", "webauthn", "recovery_codes"]
MFA_FORMS = {
    "login_webauthn": "members.passkeys.LoginForm",
    "add_webauthn": "members.passkeys.AddForm",
    "authenticate_webauthn": "members.passkeys.AuthenticateForm",
    "reauthenticate_webauthn": "members.passkeys.ReauthenticateForm",
}
MFA_PASSKEY_LOGIN_ENABLED = True
MFA_TOTP_ISSUER = "NaN"
MFA_WEBAUTHN_ALLOW_INSECURE_ORIGIN = LOCAL_STACK
USERSESSIONS_TRACK_ACTIVITY = False
SOCIALACCOUNT_EMAIL_AUTHENTICATION = False
GITHUB_CLIENT_ID = env.text("GITHUB_CLIENT_ID", "")
SOCIALACCOUNT_PROVIDERS = {
    "github": {
        "SCOPE": ["user:email"],
        "APPS": [{"client_id": GITHUB_CLIENT_ID, "secret": env.text("GITHUB_CLIENT_SECRET", "")}]
        if GITHUB_CLIENT_ID
        else [],
    }
}

# -- Mail -------------------------------------------------------------------------------------
DEFAULT_FROM_EMAIL = env.text("MAIL_FROM", "NaN <hello@localhost>")
SERVER_EMAIL = DEFAULT_FROM_EMAIL
EMAIL_TIMEOUT = 15
if LOCAL_STACK and not env.text("EMAIL_URL", ""):
    EMAIL_BACKEND = "nan.devmail.EmlBackend"
    EMAIL_FILE_PATH = env.text("MAIL_DIR", str(STATE_DIR / "mail"))
else:
    globals().update(env.mail("EMAIL_URL"))

# -- Words, numbers, days ----------------------------------------------------------------------
LANGUAGE_CODE = "es"
LANGUAGES = [("es", _("Spanish")), ("en", _("English"))]
LOCALE_PATHS = [BASE_DIR / "locale", BASE_DIR / "locale" / "vendor"]
USE_TZ = True
TIME_ZONE = "Europe/Madrid"
USE_THOUSAND_SEPARATOR = True
FORMAT_MODULE_PATH = "nan.formats"

# -- Files ------------------------------------------------------------------------------------
STATIC_URL = "/static/"
STATICFILES_DIRS = [BASE_DIR / "static"]
STATIC_ROOT = STATE_DIR / "static"
STORAGES = {
    "default": {"BACKEND": "django.core.files.storage.FileSystemStorage"},
    "staticfiles": {"BACKEND": "whitenoise.storage.CompressedManifestStaticFilesStorage"},
}

# -- Safety -----------------------------------------------------------------------------------
SESSION_COOKIE_SECURE = CSRF_COOKIE_SECURE = HTTPS
SESSION_COOKIE_NAME = "__Host-session" if HTTPS else "session"
CSRF_COOKIE_NAME = "__Host-csrf" if HTTPS else "csrf"
SESSION_COOKIE_SAMESITE = "Lax"
SECURE_SSL_REDIRECT = HTTPS
SECURE_PROXY_SSL_HEADER = ("HTTP_X_FORWARDED_PROTO", "https")
SECURE_HSTS_SECONDS = 31536000 if HTTPS else 0
# Other services under the same domain are not ours to promise TLS for.
SILENCED_SYSTEM_CHECKS = ["security.W005", "security.W021"]
SECURE_REFERRER_POLICY = "same-origin"
X_FRAME_OPTIONS = "DENY"
DATA_UPLOAD_MAX_MEMORY_SIZE = 1024 * 1024
CONTENT_SECURITY_POLICY = {
    "DIRECTIVES": {
        "default-src": [NONE],
        "script-src": [SELF],
        "style-src": [SELF],
        "img-src": [SELF, "data:"],
        "font-src": [SELF],
        "connect-src": [SELF],
        "form-action": [SELF, "https://github.com"],
        "frame-ancestors": [NONE],
        "base-uri": [NONE],
    }
}

# -- Log lines: no bodies, no headers, no query strings ------------------------------------------
LOGGING = {
    "version": 1,
    "disable_existing_loggers": False,
    "formatters": {"json": {"()": "nan.logs.formatter"}},
    "handlers": {"stderr": {"class": "logging.StreamHandler", "formatter": "json"}},
    "root": {"handlers": ["stderr"], "level": env.text("LOG_LEVEL", "INFO")},
    "loggers": {
        "httpx": {"level": "WARNING"},
        "httpcore": {"level": "WARNING"},
        "django.security.DisallowedHost": {"level": "ERROR"},
    },
}
LOGGING_CONFIG = "nan.logs.configure"
