"""Quotas in a Django project of one file: every request costs an api_call, and images cost more.

    python3 django_app.py runserver
"""

import os
import sys

from django.conf import settings
from django.core.wsgi import get_wsgi_application
from django.http import HttpRequest, JsonResponse
from django.urls import path

settings.configure(
    SECRET_KEY=os.environ.get("SECRET_KEY", "only-for-a-trial"),
    ROOT_URLCONF=__name__,
    ALLOWED_HOSTS=["127.0.0.1", "localhost", "testserver"],
    MIDDLEWARE=["quotasvc.django.QuotaMiddleware"],
    QUOTASVC={
        "meter": "api_calls",
        "tenant": lambda request: request.headers["x-org"],
        "exempt": lambda request: request.path == "/healthz",
    },
)

from quotasvc.django import consume  # noqa: E402


def search(request: HttpRequest) -> JsonResponse:
    return JsonResponse({"result": "found"})


@consume("ai_credits", amount=20)
def images(request: HttpRequest) -> JsonResponse:
    return JsonResponse({"image": "painted"})


def healthz(request: HttpRequest) -> JsonResponse:
    return JsonResponse({"status": "ok"})


urlpatterns = [path("search", search), path("images", images), path("healthz", healthz)]
application = get_wsgi_application()

if __name__ == "__main__":
    from django.core.management import execute_from_command_line

    execute_from_command_line(sys.argv)
