DATABASES = {"default": {"ENGINE": "django.db.backends.postgresql", "NAME": "shop"}}
DEFAULT_AUTO_FIELD = "django.db.models.AutoField"
INSTALLED_APPS = ["shop"]
USE_TZ = True
