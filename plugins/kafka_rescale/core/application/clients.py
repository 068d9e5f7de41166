"""The clients of a pipeline as its application file declares them, with their state directories and tags."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from pydantic import Field, field_validator, model_validator

from kafka_rescale.core.application.fields import Name, Strict, WholeNumber, place
from kafka_rescale.core.application.mistakes import WrongValue
from kafka_rescale.core.application.secrets import SparkConf
from kafka_rescale.core.assignment.configs import CLIENT_TAG, RACK, RACK_AWARE_TAGS, client_tags
from kafka_rescale.core.errors import InvalidInput

ALL_TAGS = CLIENT_TAG + "*"


class DeclaredClient(Strict):
    """One client of a pipeline; it corresponds to a process with a ``KafkaStreams``.

    :param client_id: the first part of its threads' names.
    :param state_dir: an absolute path or a URI that Arrow can write to. No other client may have the same.
    :param client_tags: written as `client.tag.<key>`, for example `client.tag.zone: eu-1`.
    :param rack_id: short for `client.tag.rack`, with `rack.aware.assignment.tags: [rack]` on the application.
    :param num_stream_threads: its number of threads, in place of the application's.
    :param spark_conn_id: Airflow connection to the Spark that it runs on, in place of the application's.
    :param spark_conf: configuration of its jobs, in addition to the application's.
    """

    client_id: Name = Field(alias="client.id")
    state_dir: str = Field(alias="state.dir")
    client_tags: dict[str, str] = Field(default_factory=dict, alias="client.tag.*")
    rack_id: Name | None = Field(default=None, alias="rack.id")
    num_stream_threads: WholeNumber | None = Field(default=None, ge=1, le=1_000, alias="num.stream.threads")
    spark_conn_id: str | None = None
    spark_conf: SparkConf = Field(default_factory=dict)

    @model_validator(mode="before")
    @classmethod
    def _gather_tags(cls, data: Any) -> Any:
        if not isinstance(data, dict):
            return data
        tags = {name: value for name, value in data.items() if _is_tag(name)}
        rest = {name: value for name, value in data.items() if name not in tags}
        return {**rest, ALL_TAGS: {n.removeprefix(CLIENT_TAG): v for n, v in tags.items()}} if tags else rest

    @field_validator("state_dir")
    @classmethod
    def _place(cls, value: str) -> str:
        return place(value)

    @field_validator("client_tags")
    @classmethod
    def _tags(cls, value: dict[str, str]) -> dict[str, str]:
        _check_tags(value, ())
        return value

    @property
    def tags(self) -> dict[str, str]:
        """Its tags, including the tag of its rack."""
        return self.client_tags if self.rack_id is None else {**self.client_tags, RACK: self.rack_id}


def check_clients(clients: Sequence[DeclaredClient], state_dir: str | None, tags: Iterable[str]) -> None:
    """Check that the clients of an application can be used together.

    :param state_dir: the application's ``state.dir``.
    :param tags: ``rack.aware.assignment.tags``.
    :raises WrongValue: they can't be used together.
    """
    if not clients and state_dir is None:
        raise WrongValue(found="no field `state.dir`", expected="a field `state.dir`", remedy="Add `state.dir:`.")
    if clients and state_dir is not None:
        raise WrongValue(
            found="`state.dir` beside `clients`",
            expected="a `state.dir` in each client",
            remedy="Give every client its own.",
        )
    for name, values in (
        ("client.id", [client.client_id for client in clients]),
        ("state.dir", [client.state_dir for client in clients]),
    ):
        if doubled := [value for value, count in Counter(values).items() if count > 1]:
            raise WrongValue(
                found=f"several clients with `{name}` {doubled[0]}",
                expected="one of each client",
                remedy="What lies there is one client's state.",
            )
    _check_racks(clients, tags)
    for client in clients:
        _check_tags(client.tags, tags, f"client {client.client_id}: ")
    if tags and not clients:
        raise WrongValue(
            found=f"`{RACK_AWARE_TAGS}` without `clients`",
            expected="clients that have these tags",
            remedy="Add them.",
        )


def _check_racks(clients: Sequence[DeclaredClient], tags: Iterable[str]) -> None:
    with_rack = [client for client in clients if client.rack_id is not None]
    if not with_rack:
        return
    if without := [client.client_id for client in clients if client.rack_id is None]:
        raise WrongValue(
            found=f"client {without[0]} without `rack.id`, and others with it",
            expected="`rack.id` of every client, or of no client",
            remedy="Add it.",
        )
    if tags:
        raise WrongValue(
            found=f"`rack.id` beside `{RACK_AWARE_TAGS}`",
            expected="one of them",
            remedy=f"`rack.id` is short for `{CLIENT_TAG}{RACK}` and `{RACK_AWARE_TAGS}: [{RACK}]`: with further "
            "tags, write it in this long form.",
        )
    for client in with_rack:
        if RACK in client.client_tags:
            raise WrongValue(
                found=f"client {client.client_id} with `rack.id` and `{CLIENT_TAG}{RACK}`",
                expected="one of them",
                remedy="Delete one: both say the same.",
            )


def _check_tags(tags: Mapping[str, str], listed: Iterable[str], whose: str = "") -> None:
    properties = {CLIENT_TAG + key: tag for key, tag in tags.items()}
    try:
        client_tags({**properties, RACK_AWARE_TAGS: ",".join(listed)})
    except InvalidInput as error:
        raise WrongValue.of(replace(error.complaint, found=f"{whose}{error.found}")) from None


def _is_tag(name: object) -> bool:
    return isinstance(name, str) and name.startswith(CLIENT_TAG) and name != ALL_TAGS
