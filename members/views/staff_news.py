"""News for all members: what admins wrote, and a form for more."""

from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils.translation import gettext as _
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_http_methods, require_POST

from members import news
from members.forms import NewsForm
from members.models import News
from members.views.asking import attempt, person
from nan.access import staff_required

SHOWN = 50


@require_http_methods(["GET", "HEAD", "POST"])
@staff_required
@never_cache
def index(request: HttpRequest) -> HttpResponse:
    form = NewsForm(request.POST or None)
    if request.method == "POST" and form.is_valid():
        actor, texts = person(request), form.cleaned_data
        attempt(request, lambda: news.write(actor=actor, **texts), _("Members read it now."))
        return redirect("staff_news")
    rows = News.objects.select_related("author", "withdrawn_by")[:SHOWN]
    context = {"rows": rows, "form": form, "days": news.DAYS}
    return render(request, "staff/news.html", context, status=422 if form.is_bound else 200)


@require_POST
@staff_required
def withdraw(request: HttpRequest, pk: int) -> HttpResponse:
    actor = person(request)
    attempt(request, lambda: news.withdraw(news=pk, actor=actor), _("Withdrawn."))
    return redirect("staff_news")
