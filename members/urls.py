from django.urls import path

from members.views import accounts, people, staff_members, staff_waitlist

urlpatterns = [
    path("", people.home, name="home"),
    path("privacy/", people.privacy, name="privacy"),
    path("waitlist/", people.waitlist_page, name="waitlist"),
    path("waitlist/answer/", people.waitlist_answer, name="waitlist_answer"),
    path("waitlist/withdraw/", people.waitlist_withdraw, name="waitlist_withdraw"),
    path("account/", people.account, name="account"),
    path("account/export/", people.export, name="account_export"),
    path("account/leave/", people.leave, name="account_leave"),
    path("goodbye/<str:token>/", people.goodbye, name="goodbye"),
    path("accounts/confirm-email/<str:key>/", accounts.confirm_address),
    path("staff/", staff_members.home, name="staff_home"),
    path("staff/mails/retry/", staff_members.retry_mails, name="staff_mails_retry"),
    path("staff/waitlist/", staff_waitlist.index, name="staff_waitlist"),
    path("staff/waitlist/decide/", staff_waitlist.decide, name="staff_waitlist_decide"),
    path("staff/waitlist/undo/", staff_waitlist.undo, name="staff_waitlist_undo"),
    path("staff/waitlist/<int:pk>/", staff_waitlist.detail, name="staff_application"),
    path("staff/members/", staff_members.index, name="staff_members"),
    path("staff/members/<int:pk>/", staff_members.detail, name="staff_member"),
    path("staff/members/<int:pk>/suspend/", staff_members.suspend, name="staff_member_suspend"),
    path(
        "staff/members/<int:pk>/reinstate/", staff_members.reinstate, name="staff_member_reinstate"
    ),
    path("staff/members/<int:pk>/limits/", staff_members.limits, name="staff_member_limits"),
]
