"""The forms shown when a run is triggered.

Airflow opens the fields that have no section, and folds every section. So a field that people set at each run has
none, and what is seldom touched has one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from airflow.sdk import Param

from kafka_rescale.core.application.streams import Mode
from kafka_rescale.core.preflight.expected_state import ExpectedState

if TYPE_CHECKING:
    from kafka_rescale.core.application.streams import Application

APPROVAL, THRESHOLDS, SAFETY = "Approval", "Thresholds", "Safety"


def expansion_params(application: Application) -> dict[str, Param]:
    """Return the params of an expansion.

    ``approve_cutover`` is on by default: whoever presses *Trigger* without reading gets copies, which harm nobody,
    and is asked before the application is stopped. A schedule is itself the decision to expand, and takes the
    defaults, so there it is off. In place nothing is copied while the application goes on, so there is no lag.
    """
    in_place = application.mode is Mode.IN_PLACE
    lag = {} if in_place else {"acceptable_recovery_lag": _acceptable_lag(application)}
    prewarming = {} if in_place else {"local_state_deleted": _local_state_deleted()}
    otherwise = f"`partitions` of the application file ({application.partitions} when parsed)"
    return {
        "target": _target(f"{otherwise}. {_policies(application)}"),
        "dry_run": _dry_run(),
        "approve_cutover": _approve_cutover(application.schedule is None),
        "approve_plan": Param(
            False,
            type="boolean",
            title="Approve the plan",
            section=APPROVAL,
            description_md="Wait for a person to approve the plan before anything is created.",
        ),
        **lag,
        "max_pause_seconds": _max_pause(application),
        **prewarming,
        "expected_state": _expected_state(),
    }


def _policies(application: Application) -> str:
    """Say what happens to the inputs; a policy says what producers do, so only the file can change it."""
    policies = ", ".join(f"`{i.topic}` {i.policy.value}" for i in application.inputs)
    return f"Inputs, by the policies of the file: {policies}"


def _max_pause(application: Application) -> Param:
    return Param(
        None,
        type=["null", "integer"],
        minimum=10,
        title="Longest pause",
        section=THRESHOLDS,
        description_md="Seconds from the stop of the running generation to the promotion; past them it is started "
        f"again. Empty: the application file's ({application.max_pause_seconds} when parsed).",
    )


def _acceptable_lag(application: Application) -> Param:
    return Param(
        None,
        type=["null", "integer"],
        minimum=0,
        title="Acceptable recovery lag",
        section=THRESHOLDS,
        description_md="Offsets per partition within which the gates open. Empty: the application file's "
        f"({application.acceptable_recovery_lag} when parsed).",
    )


def _expected_state() -> Param:
    return Param(
        ExpectedState.EITHER.value,
        type="string",
        enum=[state.value for state in ExpectedState],
        title="Application must be",
        section=SAFETY,
        description_md="`preflight` refuses if it is stopped and has to be `running`, or the reverse. `either`: "
        "one that does not run, as after somebody has grown its input, is rescaled and started.",
    )


def _local_state_deleted() -> Param:
    return Param(
        False,
        type="boolean",
        title="Local state deleted",
        section=SAFETY,
        description_md="Leave off, unless an earlier run's `prewarm` has asked for it. On means: *I have deleted* "
        "the directory of the next generation below `state.dir` on every instance. If that is not true, entries "
        "deleted since come back in its stores.",
    )


def chain_params() -> dict[str, Param]:
    """Return the params of a chain of expansions, which are handed to each of them."""
    return {
        "target": _target("`partitions` of each application file"),
        "dry_run": _dry_run(),
        "approve_cutover": _approve_cutover(True),
    }


def _target(otherwise: str) -> Param:
    return Param(
        None,
        type=["null", "integer"],
        minimum=1,
        maximum=100_000,
        title="Target partitions",
        description_md=f"Empty: {otherwise}.",
    )


def _dry_run() -> Param:
    return Param(
        False,
        type="boolean",
        title="Dry run",
        description_md="Only check and show what would be done; nothing is changed and no lease is taken.",
    )


def _approve_cutover(asked: bool) -> Param:
    return Param(
        asked,
        type="boolean",
        title="Approve the cutover",
        description_md="Wait for a person to approve the cutover, with the lag of the copies, the "
        "pause to expect, and the plan at hand; or, in place, the stop of the application.",
    )


def snapshot_params() -> dict[str, Param]:
    """Return the params of a snapshot."""
    return {
        "from_scratch": Param(
            False,
            type="boolean",
            title="From scratch",
            description_md="Read the whole changelogs instead of going on from an earlier day, and as far as they "
            "go now instead of as far as the day had been built before.",
        )
    }


def retire_params(application: Application) -> dict[str, Param]:
    """Return the params of a retirement; the name has no default, so nobody deletes anything by a slip."""
    name = application.application_id
    return {
        "dry_run": _dry_run(),
        "confirm": Param(
            None,
            type=["null", "string"],
            pattern="^" + name.replace(".", r"\.") + "$",
            title="Application to confirm",
            description_md="The topics of all generations before the running one are deleted for good. Type "
            f"`{name}` to confirm. Empty: only a dry run is possible.",
        ),
    }


def accept_params() -> dict[str, Param]:
    """Return the params of an acceptance; nothing has a default, so nobody accepts anything by a slip."""
    return {
        "findings": Param(
            type="array",
            items={"type": "string"},
            minItems=1,
            title="Findings",
            description_md="One per line, as the log of `verify` or `callback`, the page, and `status` name them: "
            "`<topic>-<partition>:<first offset>-<last offset>` or `<store>@<digest>`.",
        ),
        "reason": Param(
            type="string",
            minLength=1,
            title="Reason",
            description_md="Why they may be accepted. Kept in the report, with your name.",
        ),
    }


def roll_back_params() -> dict[str, Param]:
    """Return the params of a manual rollback."""
    return {
        "reason": Param(
            "asked for by a person",
            type="string",
            minLength=1,
            description_md="Kept in the journal.",
        )
    }
