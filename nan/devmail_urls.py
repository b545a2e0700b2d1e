from django.urls import path

from nan import devmail

urlpatterns = [
    path("", devmail.mail_list, name="devmail_list"),
    path("<slug:name>/", devmail.mail_page, name="devmail_mail"),
    path("<slug:name>/html/", devmail.mail_html, name="devmail_html"),
]
