"""The addresses of `django_server`: those of django-oauth-toolkit, and an API that requires a scope."""

from django.http import JsonResponse
from django.urls import include, path
from oauth2_provider.decorators import protected_resource


@protected_resource(scopes=["read"])
def notes(request):
    return JsonResponse({"owner": request.resource_owner.username})


urlpatterns = [
    path("o/", include("oauth2_provider.urls", namespace="oauth2_provider")),
    path("api/notes", notes),
]
