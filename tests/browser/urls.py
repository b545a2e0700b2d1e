"""The site, with its error pages at addresses of their own."""

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.urls import path

from nan.urls import handler500
from nan.urls import urlpatterns as site

__all__ = ["handler500", "urlpatterns"]


def error(request: HttpRequest, name: str) -> HttpResponse:
    return render(request, f"{name}.html")


urlpatterns = [*site, path("error/<str:name>/", error)]
