"""Tokens that a function signs: named in the connection, or Amazon's signer for brokers of Amazon MSK."""

from __future__ import annotations

import logging
import pickle
import sys
import time
import traceback
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from confluent_kafka import Producer
from kafka_rescale.core.errors import ClusterOutage, InvalidInput
from kafka_rescale.kafka.client import signed_token
from kafka_rescale.kafka.client.connection import KafkaConnection
from kafka_rescale.kafka.client.signed_token import MSK_HANDLER, SignedTokens

from testbed.processes import wait_until

SASL = {"bootstrap.servers": "k:9098", "security.protocol": "SASL_SSL", "sasl.mechanism": "OAUTHBEARER"}
NAMED = {**SASL, "oauth_cb": "user_tokens.oauth_cb", "sasl.oauthbearer.config": "s3cret"}
MSK = {**SASL, "bootstrap.servers": "b-1.demo.abcde1.c2.kafka.us-east-1.amazonaws.com:9098"}
SERVERLESS = {**SASL, "bootstrap.servers": "boot-abc.c2.kafka-serverless.CN-north-1.amazonaws.com.cn:9098"}
MODULE = "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule"
HANDLER = {
    "sasl.login.callback.handler.class": "com.example.Tokens",
    "sasl.jaas.config": f"{MODULE} required role=s3cret;",
}


class User(ModuleType):
    """A user's module, and what it was asked for."""

    def __init__(self) -> None:
        super().__init__("user_tokens")
        self.asked: list[str | None] = []
        self.answer: Any = ("token", time.time() + 900)

    def oauth_cb(self, argument: str | None) -> Any:
        """Sign."""
        self.asked.append(argument)
        if isinstance(self.answer, Exception):
            raise self.answer
        return self.answer


@pytest.fixture
def user(monkeypatch: pytest.MonkeyPatch) -> Iterator[User]:
    module = User()
    monkeypatch.setitem(sys.modules, "user_tokens", module)
    signed_token._tokens.cache_clear()
    yield module
    signed_token._tokens.cache_clear()


def test_librdkafka_and_kafka_python_get_one_and_the_same_token(user: User) -> None:
    connection = KafkaConnection(NAMED)
    callback = connection.client()["oauth_cb"]
    assert callback("s3cret")[:2] == user.answer
    provider = connection.kafka_python()["sasl_oauth_token_provider"]
    assert (provider.token(), provider.extensions()) == ("token", {})
    assert user.asked == ["s3cret"]
    assert "s3cret" not in repr(provider)


def test_principal_and_extensions_are_handed_on(user: User) -> None:
    user.answer = ("token", time.time() + 900, "us", {"pool": "1"})
    assert KafkaConnection(NAMED).client()["oauth_cb"](None) == user.answer
    assert KafkaConnection(NAMED).kafka_python()["sasl_oauth_token_provider"].extensions() == {"pool": "1"}


def test_the_connection_travels_with_the_name_and_not_the_function(user: User) -> None:
    assert pickle.loads(pickle.dumps(KafkaConnection(NAMED))).config["oauth_cb"] == "user_tokens.oauth_cb"


def test_a_token_is_signed_again_before_it_ends(user: User) -> None:
    tokens = KafkaConnection(NAMED).client()["oauth_cb"]
    tokens._signed_at -= 10_000
    user.answer = ("second", time.time() + 900)
    assert tokens(None)[0] == "second"


def test_the_end_of_its_life_may_be_in_ms_as_amazons_readme_has_it(user: User) -> None:
    until = time.time() + 900
    user.answer = ("token", int(until * 1000))
    assert KafkaConnection(NAMED).client()["oauth_cb"](None)[1] == pytest.approx(until, abs=0.01)


def test_a_failure_is_an_outage_once_no_token_is_valid(user: User, caplog: pytest.LogCaptureFixture) -> None:
    tokens = KafkaConnection(NAMED).client()["oauth_cb"]
    tokens._signed_at -= 10_000
    user.answer = ValueError("s3cret")
    with caplog.at_level(logging.WARNING):
        assert tokens(None)[0] == "token"
    assert "'user_tokens.oauth_cb' failed; the earlier token is valid for another" in caplog.text
    tokens._token = ("token", time.time() - 1, "", {})
    with pytest.raises(
        ClusterOutage, match=r"oauth_cb 'user_tokens\.oauth_cb': found ValueError; expected a"
    ) as told:
        KafkaConnection(NAMED).client()
    assert "s3cret" not in f"{told.value}{caplog.text}"


@pytest.mark.parametrize("answer", ["token", ("token",), ("token", "soon"), None])
def test_something_else_than_a_token_is_refused(user: User, answer: object) -> None:
    user.answer = answer
    with pytest.raises(InvalidInput, match=r"expected a function of the text .* returns \(token, its end"):
        KafkaConnection(NAMED).client()


@pytest.mark.parametrize(
    ("change", "found"),
    [
        ({"oauth_cb": "no_such_module.oauth_cb"}, "found No module named 'no_such_module'"),
        ({"oauth_cb": "user_tokens.absent"}, "has no attribute 'absent'"),
        ({"oauth_cb": "user_tokens.asked"}, "found a list; expected a function"),
        ({"sasl.oauthbearer.method": "oidc"}, "found a function and 'oidc'; expected one of them"),
    ],
)
def test_what_cannot_be_called_is_refused(user: User, change: dict[str, str], found: str) -> None:
    for words in (KafkaConnection.client, KafkaConnection.kafka_python):
        with pytest.raises(InvalidInput, match=found):
            words(KafkaConnection({**NAMED, **change}))


@pytest.mark.parametrize("raised", ["ValueError", "KeyError"])
def test_an_error_of_its_module_is_not_quoted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, raised: str
) -> None:
    """A module may check its secret when it is imported, and say of a wrong one what it is."""
    (tmp_path / f"raises_{raised}.py").write_text(f"raise {raised}(\n    'input_value=' + 'TOP' + 'SECRET')")
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(InvalidInput, match=f"found {raised} when importing it") as refused:
        KafkaConnection({**NAMED, "oauth_cb": f"raises_{raised}.oauth_cb"}).client()
    assert "TOPSECRET" not in "".join(traceback.format_exception(refused.value))


def test_a_module_that_is_missing_is_named() -> None:
    with pytest.raises(InvalidInput, match="found No module named 'absent_tokens'"):
        KafkaConnection({**NAMED, "oauth_cb": "absent_tokens.oauth_cb"}).client()


def test_other_callbacks_of_a_shared_connection_are_left_to_its_other_users() -> None:
    names = dict.fromkeys(("error_cb", "stats_cb", "throttle_cb", "log_cb", "on_commit"), "module.function")
    connection = KafkaConnection({"bootstrap.servers": "k:9092", **names})
    assert not names.keys() & connection.client().keys()
    assert connection.java() == {"bootstrap.servers": "k:9092", "security.protocol": "PLAINTEXT"}
    connection.kafka_python()


@pytest.mark.parametrize(("servers", "region"), [(MSK, "us-east-1"), (SERVERLESS, "cn-north-1")])
def test_amazons_signer_is_asked_for_the_brokers_region(
    user: User, monkeypatch: pytest.MonkeyPatch, servers: dict[str, str], region: str
) -> None:
    asked: list[str] = []
    signer: Any = ModuleType("aws_msk_iam_sasl_signer")
    signer.MSKAuthTokenProvider = ModuleType("MSKAuthTokenProvider")
    signer.MSKAuthTokenProvider.generate_auth_token = lambda name: (asked.append(name), ("t", 10**13))[1]
    monkeypatch.setitem(sys.modules, "aws_msk_iam_sasl_signer", signer)
    assert KafkaConnection(servers).client()["oauth_cb"](None) == ("t", 10**10, "", {})
    assert asked == [region]


def test_a_named_function_comes_before_amazons_signer(user: User) -> None:
    tokens = KafkaConnection({**NAMED, **MSK}).kafka_python()["sasl_oauth_token_provider"]
    assert isinstance(tokens, SignedTokens)
    assert tokens.token() == "token"


def test_without_amazons_signer_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "aws_msk_iam_sasl_signer", None)
    signed_token._tokens.cache_clear()
    with pytest.raises(InvalidInput, match="Install aws-msk-iam-sasl-signer-python wherever tasks run"):
        KafkaConnection(MSK).client()


def test_the_mechanism_of_java_clients_is_answered_with_the_way_that_works() -> None:
    with pytest.raises(InvalidInput, match=r"found 'AWS_MSK_IAM'.* Set OAUTHBEARER, .* aws-msk-iam-sasl-signer"):
        KafkaConnection({**MSK, "sasl.mechanism": "AWS_MSK_IAM"}).kafka_python()


class TestJava:
    def test_brokers_of_amazon_have_the_class_of_amazons_library(self) -> None:
        java = KafkaConnection(MSK).java()
        assert java["sasl.login.callback.handler.class"] == MSK_HANDLER
        assert java["sasl.jaas.config"].endswith(".OAuthBearerLoginModule required;")
        assert "s3cret" not in repr(KafkaConnection({**NAMED, **MSK}).java())

    def test_a_class_of_ones_own_and_its_options(self, user: User) -> None:
        connection = KafkaConnection({**NAMED, **HANDLER})
        assert HANDLER.items() <= connection.java().items()
        assert not HANDLER.keys() & connection.client().keys()
        connection.kafka_python()

    @pytest.mark.parametrize(
        "jaas",
        [
            'com.sun.security.auth.module.JndiLoginModule required user.provider.url="ldap://s3cret";',
            f"/* {MODULE} */ com.example.Mine required x=s3cret;",
            f"{MODULE}s required x=s3cret;",
            f'{MODULE} required x="s3cret"; com.example.Mine required;',
            f'{MODULE} required x="s3cret',
        ],
    )
    @pytest.mark.parametrize("tokens", [NAMED, MSK])
    def test_another_module_that_logs_in_is_refused(self, tokens: dict[str, str], jaas: str) -> None:
        with pytest.raises(InvalidInput, match=r"sasl\.jaas\.config: found .*; expected .*LoginModule") as refused:
            KafkaConnection({**tokens, **HANDLER, "sasl.jaas.config": jaas}).java()
        assert "s3cret" not in str(refused.value)

    @pytest.mark.parametrize("options", ["", " a=b c='d; e'", ' a="b; \\" c" d=e.f-g', ' a = "b"\n c=d '])
    def test_the_module_may_have_any_options(self, options: str) -> None:
        jaas = f" {MODULE} required{options};\n"
        assert KafkaConnection({**MSK, "sasl.jaas.config": jaas}).java()["sasl.jaas.config"] == jaas

    def test_without_a_class_it_says_where_to_name_one(self) -> None:
        with pytest.raises(InvalidInput, match=r"handler\.class: found nothing, and oauth_cb .* role verify"):
            KafkaConnection(NAMED).java()

    def test_nothing_else_of_java_may_be_named_and_nothing_without_signed_tokens(self) -> None:
        with pytest.raises(InvalidInput, match=r"Java clients \(sasl\.login\.class\)"):
            KafkaConnection({**NAMED, **HANDLER, "sasl.login.class": "x"}).java()
        plain = {"sasl.mechanism": "PLAIN", "sasl.username": "u", "sasl.password": "p"}
        with pytest.raises(InvalidInput, match=r"settings of Java clients"):
            KafkaConnection({**SASL, **HANDLER, **plain}).java()


def test_librdkafka_has_tokens_renewed_in_the_background(user: User, monkeypatch: pytest.MonkeyPatch) -> None:
    """A job may compute for longer than a token is valid, without a poll."""
    monkeypatch.setattr(user, "oauth_cb", lambda _: (user.asked.append(None), ("token", time.time() + 3))[1])
    settings = {**NAMED, "bootstrap.servers": "127.0.0.1:1", "security.protocol": "SASL_PLAINTEXT"}
    client = Producer(KafkaConnection(settings).client())
    wait_until(lambda: len(user.asked) > 2, timeout=60, what="the token to be renewed twice")
    del client
