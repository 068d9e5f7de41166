"""Preflight of topics: existence, configs, replicas, and the names that green needs."""

from __future__ import annotations

from dataclasses import replace

import pytest
from kafka_rescale.core.cluster import GroupDescription, TopicDescription
from kafka_rescale.core.control.generations import Generations
from kafka_rescale.core.control.journal import Phase
from kafka_rescale.core.control.state import ControlState
from kafka_rescale.core.preflight.situation import Situation
from kafka_rescale.core.topology.topic_names import LONGEST_NAME
from kafka_rescale.operations.application.load import topology_of

from tests.support.situations import (
    CUSTOMERS_CHANGELOG,
    FIXED,
    INPUTS,
    SET_BY_PROGRAM,
    STORES,
    TOPICS,
    Refusals,
    found,
    journal,
    samples,
    situation,
    with_configs,
)

REPARTITION = "by-customer-repartition"
KNOWN = ControlState(generations=Generations(running="shop", generation=1))
OWN = TopicDescription(REPARTITION, 4, 1, {"cleanup.policy": "delete"})


def named_as_internal() -> Situation:
    """The re-keyed orders go through a topic of the user, which is declared as an input."""
    given = situation(
        topics={f"shop-{REPARTITION}": None, REPARTITION: OWN},
        inputs=[{**i, "policy": "paused"} for i in (*INPUTS, {"topic": REPARTITION})],
        samples=samples(**{f"shop-{REPARTITION}": [], "shop-orders": []}),
        visible=frozenset({REPARTITION, "shop-orders", "shop-customers"}),
    )
    return replace(given, topology=topology_of(given.application))


def test_an_input_that_is_named_as_an_internal_topic_is_read_by_its_own_name() -> None:
    given = named_as_internal()
    assert found(given) == []
    assert given.plan.repartitions == ()
    assert {i.topic for i in given.plan.inputs} == {"shop-orders", "shop-customers", REPARTITION}
    undeclared = replace(given, application=situation().application)
    undeclared = replace(undeclared, topology=topology_of(undeclared.application))
    assert found(undeclared) == [
        f"topic 'shop-{REPARTITION}': found no such topic; expected the repartition topic. There is a topic "
        f"{REPARTITION}: if it is your own, which the program writes and reads, declare it in `inputs:`."
    ]


def test_a_plain_store_whose_entries_expire_is_taken_as_the_remedy_says() -> None:
    expiring = with_configs("shop-totals-changelog", cleanup__policy="compact,delete", retention__ms="1000000000")
    processor = {"name": "totals", "type": "processor", "partitioning_key": "whole"}
    given = situation(stores=[*STORES[:1], processor, *STORES[2:]], topics=expiring)
    assert found(given) == []
    [move] = [m for m in given.plan.moves if m.store == "totals"]
    plain = situation().plan.changelogs
    assert move.model_copy(update={"store_type": "timestamped-key-value", "partitioning_key": ""}) in plain


TOPIC_REFUSALS: Refusals = {
    "input missing": (
        lambda: situation(topics={"shop-orders": None}),
        [
            "topic 'shop-orders': found no such topic; expected the input topic. Create it, or correct its "
            "name in the topology and `inputs:`."
        ],
    ),
    "output missing": (
        lambda: situation(topics={"shop-totals": None}),
        [
            "topic 'shop-totals': found no such topic; expected the output topic. Create it, or delete it "
            "from `outputs:`."
        ],
    ),
    "repartition missing": (
        lambda: situation(topics={"shop-by-customer-repartition": None}),
        [
            "topic 'shop-by-customer-repartition': found no such topic; expected the repartition topic. Paste "
            "the topology that the running program prints."
        ],
    ),
    "optimised source table": (
        lambda: situation(topics={"shop-customers-changelog": None}),
        [
            "topic 'shop-customers-changelog': found no such topic; expected the changelog of store "
            "customers. If `topology.optimization` makes an input (shop-customers) "
            "serve as its changelog, declare `changelog: source`: with `policy: fixed` it needs no other. If the "
            "program does not log the store, its content is only on local disks and can't be copied. To keep the "
            "content, run the program with logging first. To let shop-g2 start with it empty, write `- {name: "
            "customers, changelog: none}`."
        ],
    ),
    "has never run": (
        lambda: situation(topics={t: None for t in TOPICS if t.endswith(("changelog", "repartition"))}),
        [
            "application 'shop': found none of its internal topics on the cluster; expected topics such as "
            "shop-by-customer-repartition. Correct `application_id` or the Kafka connection; if it has never "
            "run, it has no state to move."
        ],
    ),
    "a store that the topology has forgotten": (
        lambda: situation(visible=frozenset({*TOPICS, "shop-extra-changelog", "shop-by-day-repartition"})),
        [
            "internal topics of 'shop': found shop-by-day-repartition, shop-extra-changelog, which the "
            "topology does not know; expected every store and repartition topic of the running program in the "
            "topology: others are left behind. Print Topology#describe() of the running program again. If one is "
            "another application's, name that application's id in `unrelated:`; if an older version of shop has "
            "left it and it is not needed, delete it, or name it there: `unrelated: [shop-by-day-repartition]`."
        ],
    ),
    "window declared as key-value": (
        lambda: situation(topics=with_configs("shop-totals-changelog", cleanup__policy="compact,delete")),
        [
            "topic 'shop-totals-changelog': found cleanup.policy compact,delete; expected compact for the "
            "timestamped-key-value store totals. Kafka Streams sets compact,delete for windows and sessions: "
            "declare the store's real type. If the program itself sets it, so that entries expire, declare `type: "
            "processor` with `partitioning_key: whole`."
        ],
    ),
    "versions that expire": (
        lambda: situation(
            stores=[*STORES[:1], {"name": "totals", "type": "versioned"}, *STORES[2:]],
            topics=with_configs("shop-totals-changelog", cleanup__policy="compact,delete"),
        ),
        [
            "topic 'shop-totals-changelog': found cleanup.policy compact,delete; expected compact for the "
            "versioned store totals. Kafka Streams sets compact,delete for windows and sessions: declare the "
            "store's real type."
        ],
    ),
    "changelog that is not compacted": (
        lambda: situation(topics=with_configs("shop-visits-changelog", cleanup__policy="delete")),
        [
            "topic 'shop-visits-changelog': found cleanup.policy delete; expected compact,delete or compact "
            "for the session store visits. Kafka Streams sets delete alone for the windows of stream-stream "
            "joins: declare `type: join-window`. The changelog of any other store loses live entries: set "
            "cleanup.policy=compact and check the store."
        ],
    ),
    "LogAppendTime": (
        lambda: situation(topics=with_configs("shop-totals-changelog", message__timestamp__type="LogAppendTime")),
        [
            "topic 'shop-totals-changelog': found message.timestamp.type LogAppendTime; expected CreateTime: "
            "the timestamps of the entries are part of the state. Set message.timestamp.type=CreateTime on it."
        ],
    ),
    "LogAppendTime of a repartition topic": (
        lambda: situation(
            topics=with_configs("shop-by-customer-repartition", message__timestamp__type="LogAppendTime")
        ),
        [
            "topic 'shop-by-customer-repartition': found message.timestamp.type LogAppendTime; expected "
            "CreateTime: the records in flight are carried with their timestamps, by which windows and joins go. "
            "Set message.timestamp.type=CreateTime on it; Kafka Streams does so for new topics since 2.5 "
            "(KAFKA-6614)."
        ],
    ),
    "LogAppendTime of an input that gets a successor": (
        lambda: situation(
            inputs=[INPUTS[0], {**INPUTS[1], "policy": "repartitioned"}],
            topics=with_configs("shop-customers", message__timestamp__type="LogAppendTime"),
        ),
        [
            "input topic 'shop-customers': found message.timestamp.type LogAppendTime, by the topic's own config "
            "or the brokers' log.message.timestamp.type; expected CreateTime: its successor would give every "
            "record the time of its bridging, and windows and joins would go by that. Set "
            "message.timestamp.type=CreateTime on shop-customers, if the application may go by the clocks of its "
            "producers from then on; else declare another policy."
        ],
    ),
    "too few brokers": (
        lambda: situation(
            topics={"shop-totals-changelog": replace(TOPICS["shop-totals-changelog"], replication_factor=3)},
            cluster={"brokers": 2},
        ),
        [
            "topic 'shop-totals-changelog': found replication factor 3 with 2 live brokers; expected as many "
            "brokers as its copy needs replicas. Start the missing brokers."
        ],
    ),
    "min.insync.replicas": (
        lambda: situation(topics=with_configs("shop-by-customer-repartition", min__insync__replicas="2")),
        [
            "topic 'shop-by-customer-repartition': found min.insync.replicas 2 with replication factor 1; "
            "expected at most the replication factor: nothing could be written to its copy. Lower "
            "min.insync.replicas, or raise the replication factor."
        ],
    ),
    "foreign data": (
        lambda: situation(control=KNOWN, green_records={"shop-g2-totals-changelog": 17}),
        [
            "topic 'shop-g2-totals-changelog': found 17 records in a topic that no expansion of this "
            "application has made; expected a name that is free for the next generation. If it is not needed, "
            "delete it (`kafka-topics.sh --delete --topic shop-g2-totals-changelog`)."
        ],
    ),
    "somebody runs as green": (
        lambda: situation(control=KNOWN, green_group=GroupDescription("shop-g2", "Stable", ("a", "b"))),
        [
            "group 'shop-g2': found 2 members; expected no member before the next generation is started. Stop "
            "whatever runs with that application.id."
        ],
    ),
}


@pytest.mark.parametrize("case", TOPIC_REFUSALS)
def test_a_spoilt_one_is_refused(case: str) -> None:
    make, expected = TOPIC_REFUSALS[case]
    assert found(make()) == expected


def test_the_brokers_time_is_an_inputs_own_affair_where_no_successor_follows() -> None:
    theirs = with_configs("shop-customers", message__timestamp__type="LogAppendTime")
    assert found(situation(topics=theirs)) == []
    assert found(situation(4, inputs=REPARTITIONED, topics=theirs)) == []


SUCCESSOR = "shop-customers-p8"
REPARTITIONED = [INPUTS[0], {**INPUTS[1], "policy": "repartitioned"}]
LEFT = "shop-g2-by-customer-repartition"


def there_already(name: str, source: str, **configs: str) -> Situation:
    """An empty topic with a name that the next generation needs. Its source has the brokers' defaults."""
    own = {"message.timestamp.type": "CreateTime", "max.message.bytes": "1048588", "cleanup.policy": "delete"}
    described = replace(TOPICS[source], configs=own)
    found = replace(described, name=name, partitions=8, configs={**own, **configs})
    return situation(
        inputs=REPARTITIONED,
        topics={name: found, source: described},
        samples=(),
        control=journal(8, Phase.ROLLED_BACK),
    )


@pytest.mark.parametrize(
    ("config", "value", "expected"),
    [
        ("message.timestamp.type", "LogAppendTime", "CreateTime: it is to keep the times of "),
        ("max.message.bytes", "1000", "at least 1048588, to take all records of "),
        ("message.timestamp.before.max.ms", "5", "at least 9223372036854775807, to take all records of "),
        ("cleanup.policy", "compact", "delete: it is to keep every record of "),
    ],
)
@pytest.mark.parametrize(
    ("name", "source"), [(LEFT, "shop-by-customer-repartition"), (SUCCESSOR, "shop-customers")]
)
def test_a_topic_that_is_there_already_takes_what_its_source_has(
    name: str, source: str, config: str, value: str, expected: str
) -> None:
    assert found(there_already(name, source)) == []
    spoilt = there_already(name, source, **{config: value})
    [text] = found(spoilt)
    assert text.startswith(
        f"topic {name!r}: found {config} {value} on the topic that is there already; expected {expected}{source}. "
        f"Set {config}="
    )
    # `expand` sets every config on the topic that is set on the source itself.
    described = replace(
        spoilt.cluster.topics[source],
        overrides={config: spoilt.cluster.topics[source].configs.get(config, "9223372036854775807")},
    )
    topics = {**spoilt.cluster.topics, source: described}
    assert found(replace(spoilt, cluster=replace(spoilt.cluster, topics=topics))) == []


def test_the_names_of_the_next_generation_are_those_of_topics() -> None:
    longest = LONGEST_NAME - len("shop-g2--changelog")
    given = renamed(totals="t" * longest)
    assert found(given) == []
    name = f"shop-g2-{'t' * (longest + 1)}-changelog"
    assert found(renamed(totals="t" * (longest + 1))) == [
        f"topic {name!r}: found a name of 250 characters, which is to follow shop-totals-changelog; expected "
        "at most 249, which Kafka takes. Give the store or the repartition a shorter name in the program that is "
        "started as shop-g2, and declare it in `green_names:`. A shorter application id or "
        "`internal_topic_prefix:` would have to be that of shop, too: it comes with an application that begins "
        "anew."
    ]
    [text] = found(renamed(by__customer="t" * (longest + 1)))
    assert "-repartition': found a name of 252 characters, which is to follow shop-by-customer-repartition" in text
    [text] = found(
        situation(inputs=[INPUTS[0], {**REPARTITIONED[1], "successor": "{topic}" * 18 + "-{partitions}"}])
    )
    assert text.startswith(f"topic '{'shop-customers' * 18}")
    assert text.endswith("Give a shorter one as `successor:` of input shop-customers, with {partitions} in it.")


def renamed(**names: str) -> Situation:
    """The next generation has other names for stores and repartitions. Double underscores stand for dashes."""
    given = situation()
    dashed = {name.replace("__", "-"): then for name, then in names.items()}
    return replace(given, application=given.application.model_copy(update={"green_names": dashed}))


def test_own_leftovers_are_kept_unless_they_have_another_count() -> None:
    left = TopicDescription("shop-g2-totals-changelog", 8, 1)
    records_left = {left.name: 17}
    rolled_back = journal(8, Phase.ROLLED_BACK)
    topics = {left.name: left}
    assert found(situation(8, control=rolled_back, green_records=records_left, topics=topics)) == []
    assert found(situation(6, control=rolled_back, green_records=records_left, topics=topics)) == [
        "topic 'shop-g2-totals-changelog': found 8 partitions, left by an attempt with another target; "
        "expected 6 partitions or no such topic. Delete it (`kafka-topics.sh --delete --topic "
        "shop-g2-totals-changelog`) and the local state of shop-g2, if it was pre-warmed; blue does not use them."
    ]


FOREIGN_KEYS = {
    f"shop-{name}"
    for name in (
        "fk-subscription-response-topic",
        "KTABLE-FK-JOIN-SUBSCRIPTION-REGISTRATION-0000000006-topic",
        "orders-by-id-repartition",
        "orders-totals-changelog",
    )
}


@pytest.mark.parametrize("topic", sorted(FOREIGN_KEYS))
def test_every_kind_of_internal_topic_needs_an_explanation(topic: str) -> None:
    assert [topic in text for text in found(situation(visible=frozenset({topic})))] == [True]


def test_topics_of_others_and_of_other_generations_need_none() -> None:
    others = {
        "shopping-x-changelog",
        "shop-log",
        "shop-totals",
        "shop-g2-old-changelog",
        "shop-g12-old-repartition",
    }
    assert found(situation(visible=frozenset({*TOPICS, *others}))) == []
    neighbours = {"shop-eu-x-changelog", "shop-eu-g2-x-changelog", "shop-old-changelog"}
    given = situation(visible=frozenset({*TOPICS, *neighbours}))
    assert len(found(given)) == 1
    unrelated = {"unrelated": ("shop-eu", "shop-old-changelog")}
    assert found(replace(given, application=given.application.model_copy(update=unrelated))) == []


def test_a_later_generation_does_not_look_at_what_the_first_one_has_left() -> None:
    generations = Generations(running="shop-g2", generation=2, partitions=4, previous="shop")
    later = {
        t.replace("shop-", "shop-g2-", 1): d for t, d in TOPICS.items() if t.endswith(("changelog", "repartition"))
    }
    given = situation(topics=later, control=ControlState(generations=generations), samples=())
    given = replace(given, visible=frozenset({*TOPICS, *later, "shop-extra-changelog"}))
    assert (
        found(replace(given, cluster=replace(given.cluster, group=GroupDescription("shop-g2", "Stable", ("m",)))))
        == []
    )
    assert "shop-g2-extra-changelog" in found(replace(given, visible=frozenset({"shop-g2-extra-changelog"})))[0]


def test_a_table_declared_to_have_no_changelog_of_its_own() -> None:
    stores = [{**STORES[0], "changelog": "source"}, *STORES[1:]]
    given = situation(inputs=FIXED, stores=stores, repartitions=SET_BY_PROGRAM, target=4)
    without = replace(given, topology=given.topology.with_source_tables({"customers"}))
    assert found(without) == [
        "topic 'shop-customers-changelog': found a changelog of store customers, declared with `changelog: "
        "source`; expected no such topic: its source topic would serve as one. Delete `changelog: source`; if the "
        "program was optimised since, delete the topic instead."
    ]
    topics = {name: t for name, t in given.cluster.topics.items() if name != CUSTOMERS_CHANGELOG}
    assert found(replace(without, cluster=replace(given.cluster, topics=topics))) == []


def test_names_that_were_those_of_the_next_generation_are_remembered() -> None:
    generations = Generations(running="shop-g2", generation=2, partitions=4, previous="shop")
    topics = {
        t.replace("shop-", "shop-g2-", 1): d for t, d in TOPICS.items() if t.endswith(("changelog", "repartition"))
    }
    topics.pop("shop-g2-by-customer-repartition")
    given = situation(topics=topics, control=ControlState(generations=generations))
    renamed = given.application.model_copy(update={"green_names": {"by-customer": "KSTREAM-5"}})
    assert found(replace(given, application=renamed))[0].endswith(
        "Paste the topology that the running program prints. `green_names:` were meant for the generation that "
        "runs now: delete them."
    )
