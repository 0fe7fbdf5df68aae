"""django-oauth-toolkit, set up as documented, with a logged-in user."""

import os
import threading
import wsgiref.simple_server

import django
from django.conf import settings

CLIENT_ID, CLIENT_SECRET = "judge-at-django", "s3cret-of-the-client-at-django"


class SignedIn:
    """The user's browser already has a session."""

    def __init__(self, get_response):
        self.get_response = get_response

    def __call__(self, request):
        from django.contrib.auth.models import User

        request.user = User.objects.get(username="ada")
        return self.get_response(request)


class Quiet(wsgiref.simple_server.WSGIRequestHandler):
    def log_message(self, *_):
        pass


class DjangoServer:
    """Django has one configuration, so each process has one server. The test searches for `secrets`."""

    def __init__(self, folder, key):
        self.folder, self.key = folder, key
        self.faults, self.secrets = [], {CLIENT_SECRET}

    def __enter__(self):
        settings.configure(
            SECRET_KEY="of the judge", ALLOWED_HOSTS=["127.0.0.1"], ROOT_URLCONF="django_urls", USE_TZ=True,
            INSTALLED_APPS=["django.contrib.auth", "django.contrib.contenttypes", "django.contrib.sessions", "oauth2_provider"],
            DATABASES={"default": {"ENGINE": "django.db.backends.sqlite3", "NAME": os.path.join(self.folder, "django.db")}},
            MIDDLEWARE=["django_server.SignedIn"], DEFAULT_AUTO_FIELD="django.db.models.BigAutoField",
            PASSWORD_HASHERS=["django.contrib.auth.hashers.MD5PasswordHasher"],
            TEMPLATES=[{"BACKEND": "django.template.backends.django.DjangoTemplates", "APP_DIRS": True}],
            OAUTH2_PROVIDER={
                "OIDC_ENABLED": True, "OIDC_RSA_PRIVATE_KEY": self.key, "PKCE_REQUIRED": True,
                "SCOPES": {"openid": "who you are", "read": "read your notes", "write": "write notes"},
            })
        django.setup()
        from django.contrib.auth.models import User
        from django.core.management import call_command
        from django.core.wsgi import get_wsgi_application
        from oauth2_provider.models import Application

        call_command("migrate", verbosity=0)
        User.objects.create(username="ada")
        Application.objects.create(
            client_id=CLIENT_ID, client_secret=CLIENT_SECRET, client_type="confidential", algorithm="RS256",
            authorization_grant_type="authorization-code", redirect_uris="http://127.0.0.1/callback/django")
        self.server = wsgiref.simple_server.make_server("127.0.0.1", 0, get_wsgi_application(), handler_class=Quiet)
        self.port = self.server.server_port
        self.base = f"http://127.0.0.1:{self.port}"
        threading.Thread(target=self.server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True).start()
        return self

    def __exit__(self, *_):
        self.server.shutdown()
        self.server.server_close()

    @staticmethod
    def tokens():
        """Returns the valid access tokens."""
        from oauth2_provider.models import AccessToken

        return [token.token for token in AccessToken.objects.all() if token.is_valid()]
