"""Servers that others wrote, with descriptors written from their documentation."""

import json

import django_server
from django_server import DjangoServer
from program import LOGIN_NEEDED, REFUSED, ProgramTest
from test_oauth1 import rsa_key


class Django(ProgramTest):
    def test_django_oauth_toolkit(self):
        service = self.serve(DjangoServer(self.folder, rsa_key()[1]))
        provider = self.add("django", service, django_server.CLIENT_ID, django_server.CLIENT_SECRET)
        # The person's name is that of the ID token, and of the endpoint for it.
        self.credmgr("login", provider)
        self.assertEqual(json.loads(self.credmgr("status", provider, "--json").out)[0]["account"], "1")
        first = self.credmgr("token", provider).line
        self.assertEqual(json.loads(self.credmgr("request", provider, service.base + "/api/notes").out), {"owner": "ada"})
        # Its refresh tokens rotate.
        for _ in range(2):
            self.credmgr("refresh", provider)
        second = self.credmgr("token", provider).line
        self.assertEqual(service.tokens(), [second])
        self.assertNotEqual(first, second)
        self.credmgr("request", provider, service.base + "/api/notes")
        # Its ID tokens and its metadata are what a discovered descriptor takes them for.
        self.credmgr("add-provider", service.base + "/o", "--as", "discovered", "--client-id", django_server.CLIENT_ID,
                     "--client-secret-file", self.file("secret", django_server.CLIENT_SECRET), "--yes")
        self.credmgr("logout", provider)
        self.assertEqual(service.tokens(), [])
        self.credmgr("token", provider, status=LOGIN_NEEDED)
        # A wrong secret is refused.
        self.add("django", service, django_server.CLIENT_ID, "not-the-secret")
        self.credmgr("login", provider, status=REFUSED)
