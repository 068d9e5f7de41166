"""Notifications in an application file: mistakes are refused with their line, and secrets before anything else."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from kafka_rescale.core.application.notifications import Event
from kafka_rescale.core.errors import InvalidInput
from kafka_rescale.operations.application.load import load_application

from tests.support.application_files import write_application

SMTP = "airflow.providers.smtp.notifications.smtp:SmtpNotifier"
ARGUMENTS = {"to": "streams@example.com", "smtp_conn_id": "mail", "subject": "{{ rescale.subject }}"}

UNTOLD = "pause_alert_seconds: found no notifier of event long_pause; expected one for `pause_alert_seconds:`"


def entry(**changes: Any) -> dict[str, Any]:
    return {"notifier": SMTP, "arguments": ARGUMENTS, **changes}


def test_nobody_is_told_unless_the_file_says_so(tmp_path: Path) -> None:
    application = load_application(write_application(tmp_path))
    assert application.notifications == ()
    assert application.pause_alert_seconds is None


def test_a_notifier_is_told_of_everything_or_of_the_events_that_it_names(tmp_path: Path) -> None:
    some = entry(events=["failed", "long_pause"])
    application = load_application(write_application(tmp_path, notifications=[entry(), some]))
    assert len(application.notifications_of(Event.FAILED)) == 2
    assert len(application.notifications_of(Event.COMPLETE)) == 1


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        ({"password": "x"}, "an argument `password`"),
        ({"slack_token": "x"}, "an argument `slack_token`"),
        ({"apiKey": "x"}, "an argument `apiKey`"),
        ({"headers": {"Authorization": "Bearer x"}}, "an argument `Authorization`"),
        ({"webhook_url": "https://hooks/x"}, "an argument `webhook_url`"),
        ({"targets": [{"client_secret": "x"}]}, "an argument `client_secret`"),
        ({"urls": ["mailto://me:x@example.com"]}, "an address with a password in `urls`"),
        ({"integration_key": "x"}, "an argument `integration_key`"),
        ({"routingKey": "x"}, "an argument `routingKey`"),
        ({"pwd": "x"}, "an argument `pwd`"),
        ({"key": "x"}, "an argument `key`"),
        ({"api_tok": "x"}, "an argument `api_tok`"),
        ({"hook_url": "https://x/?token=Bearer x"}, "an address with a secret in its query in `hook_url`"),
        ({"url": "https://hooks/x?a=b&sig=Bearer"}, "an address with a secret in its query in `url`"),
        ({"url": "https://hooks.slack.com/services/T0/B0/X"}, "an address that is itself a secret in `url`"),
        ({"url": "https://discord.com/api/webhooks/1/X"}, "an address that is itself a secret in `url`"),
        ({"text": "curl https://u:hooks/x@h/"}, "an address with a password in `text`"),
        ({"text": "see https://hooks-x@h/ for more"}, "an address with a password in `text`"),
    ],
)
def test_a_secret_is_refused_by_its_name_and_not_shown(
    tmp_path: Path, arguments: dict[str, Any], named: str
) -> None:
    file = write_application(tmp_path, notifications=[entry(arguments=arguments)])
    line = 1 + file.read_text().splitlines().index("  arguments:")
    with pytest.raises(InvalidInput, match="the id of an Airflow connection") as refused:
        load_application(file)
    assert f"{file}:{line}: notifications[0].arguments: found {named}" in str(refused.value)
    assert "Bearer x" not in str(refused.value)
    assert "hooks/x" not in str(refused.value)


@pytest.mark.parametrize(
    "arguments",
    [
        {"dedup_key": "{{ rescale.application }}", "routing": "a", "keyword": "x", "monkey": "x"},
        {"url": "https://page:8080/kafka-rescale/shop?run=1&keyword=x", "to": "a@example.com"},
        {"text": "{{ rescale.text }} http://page:8080/x, then write to a@example.com. Key: 3; token=none"},
        {"text": "https://medium.com/@x and mailto:a@example.com and kafka://a:9092,b:9092/x@y"},
    ],
)
def test_what_only_resembles_one_is_let_pass(tmp_path: Path, arguments: dict[str, Any]) -> None:
    load_application(write_application(tmp_path, notifications=[entry(arguments=arguments)]))


@pytest.mark.parametrize("name", ["smtp_conn_id", "slack_webhook_conn_id", "token_connection_id"])
def test_the_id_of_a_connection_is_no_secret(tmp_path: Path, name: str) -> None:
    load_application(write_application(tmp_path, notifications=[entry(arguments={name: "mail"})]))


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"notifications": [entry(notifier="smtp.SmtpNotifier")]}, "notifications[0].notifier"),
        ({"notifications": [entry(event=["failed"])]}, "Did you mean `events`?"),
        ({"notifications": [entry(events=["success"])]}, "notifications[0].events[0]"),
        ({"notifications": [entry(events=[])]}, "at least 1 entry"),
        ({"notifications": [entry()], "pause_alert_seconds": 0}, "found 0; expected 1 or more"),
        ({"pause_alert_seconds": 60}, UNTOLD),
        ({"pause_alert_seconds": 60, "notifications": [entry(events=["failed"])]}, UNTOLD),
    ],
)
def test_a_mistake_is_refused_with_its_line(tmp_path: Path, changes: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidInput) as refused:
        load_application(write_application(tmp_path, **changes))
    assert message in str(refused.value)
