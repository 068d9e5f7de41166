"""The trigger forms of the DAGs of an application.

Airflow shows the fields without a section, and folds every section. So a field that people set at each run has no
section, and a field that is seldom touched has a section.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from airflow.sdk import Param

from kafka_rescale.core.application.streams import Mode
from kafka_rescale.core.expansion.pacing_say import ACTIONS as PACE_ACTIONS
from kafka_rescale.core.expansion.pacing_say import LIMIT, PAUSE, RESUME
from kafka_rescale.core.expansion.switch_words import (
    ACTIONS,
    CANCEL,
    CUT_OVER_NOW,
    IN_WINDOW,
    NOW,
    POSTPONE,
)
from kafka_rescale.core.preflight.expected_state import ExpectedState

if TYPE_CHECKING:
    from kafka_rescale.core.application.streams import Application

APPROVAL, THRESHOLDS, SAFETY = "Approval", "Thresholds", "Safety"


def whole_number(name: str, otherwise: int | None = None) -> str:
    """Return the template of a field with a whole number. REST takes 600.0 for one; `int` does not take its text.

    :param name: The field.
    :param otherwise: What an empty field means; None for an empty text.
    """
    empty = "''" if otherwise is None else otherwise
    return f"{{{{ {empty} if params.{name} is none else params.{name} | int }}}}"


def expansion_params(application: Application) -> dict[str, Param]:
    """Return the params of an expansion.

    ``approve_cutover`` is on by default. A person who presses *Trigger* without reading then gets copies, which do
    no harm, and is asked before the application is stopped. With a schedule it is off, because scheduled runs take
    the defaults, and the schedule itself is the decision to expand: at its times, so ``preflight`` skips a run
    that begins late. In place, nothing is copied while the application runs, so the form has no lag.
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
        **({} if in_place else {"verify_whole": _verify_whole()}),
    }


def _policies(application: Application) -> str:
    """Return the policies of the inputs as text. They say what producers do, so only the file can change them."""
    policies = ", ".join(f"`{i.topic}` {i.policy.value}" for i in application.inputs)
    return f"Policies of the inputs, from the file: {policies}"


def _max_pause(application: Application) -> Param:
    return Param(
        None,
        type=["null", "integer"],
        minimum=10,
        title="Longest pause",
        section=THRESHOLDS,
        description_md="Most seconds from the begin of the pause to the promotion. If they pass, the cutover is "
        "rolled back and the running generation starts again. Empty: the application file's value "
        f"({application.max_pause_seconds} when parsed).",
    )


def _acceptable_lag(application: Application) -> Param:
    return Param(
        None,
        type=["null", "integer"],
        minimum=0,
        title="Acceptable recovery lag",
        section=THRESHOLDS,
        description_md="The gates open when every partition is at most this many offsets behind. Empty: the "
        f"application file's value ({application.acceptable_recovery_lag} when parsed).",
    )


def _expected_state() -> Param:
    return Param(
        ExpectedState.EITHER.value,
        type="string",
        enum=[state.value for state in ExpectedState],
        title="Application must be",
        section=SAFETY,
        description_md="`running` or `stopped`: `preflight` refuses if the application is in the other state. "
        "`either`: an application that does not run, for example because somebody has grown its input, is "
        "rescaled and then started.",
    )


def _verify_whole() -> Param:
    return Param(
        False,
        type="boolean",
        title="Compare everything again",
        section=SAFETY,
        description_md="The whole state is compared before the promotion, up to the last record. After it, "
        "`verify` compares versioned stores once more. On: it compares all stores once more, with another client.",
    )


def _local_state_deleted() -> Param:
    return Param(
        False,
        type="boolean",
        title="Local state deleted",
        section=SAFETY,
        description_md="Leave this off, unless `prewarm` of an earlier run has asked for it. On means: *I have "
        "deleted* the directory of the next generation below `state.dir` on every instance. If that is not true, "
        "entries that were deleted since then come back in its stores.",
    )


def chain_params() -> dict[str, Param]:
    """Return the params of a chain of expansions. The chain passes them to each expansion."""
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
        description_md="Only check, and show what would be done. The run changes nothing and takes no lease.",
    )


def _approve_cutover(asked: bool) -> Param:
    return Param(
        asked,
        type="boolean",
        title="Approve the cutover",
        description_md="Wait for a person to approve the cutover. The question shows the lag of the copies, the "
        "pause to expect, and the plan. In place: wait for a person to approve the stop of the application.",
    )


def approval_params(application: Application) -> dict[str, Param]:
    """Return the fields of the approval of the cutover: when it shall begin."""
    windows = application.cutover_windows
    at = Param(
        None,
        type=["null", "string"],
        format="date-time",
        title="At another time",
        description_md="The cutover begins at this time, whatever the windows are. A time that is past, or behind "
        "the limit of the wait, begins nothing: then the cutover waits for another order. Empty: "
        + ("see above." if windows else "now, unless it was postponed: see the question."),
    )
    if windows is None:
        return {"at": at}
    when = Param(
        IN_WINDOW,
        type="string",
        enum=[IN_WINDOW, NOW],
        title="When",
        description_md=f"In the next window of the application file ({windows}), or now. If it was postponed, it "
        f"stays so with `{IN_WINDOW}`: see the question.",
    )
    return {"when": when, "at": at}


def switch_params() -> dict[str, Param]:
    """Return the params by which a person says when the switch begins."""
    return {
        "action": Param(
            type="string",
            enum=list(ACTIONS),
            title="What",
            description_md=f"`{POSTPONE}`: the switch waits until the time below, and then for the next window; "
            f"without a time, until a person says `{CUT_OVER_NOW}`. `{CUT_OVER_NOW}`: it begins now, whatever the "
            f"windows are. `{CANCEL}`: there is no switch, and the run ends; what was copied stays.",
        ),
        "until": Param(
            None,
            type=["null", "string"],
            format="date-time",
            title="Postpone until",
            description_md=f"Only for `{POSTPONE}`.",
        ),
        "reason": _reason(),
    }


def _reason() -> Param:
    return Param("", type="string", title="Reason", description_md="The page and `status` show it.")


def pace_params() -> dict[str, Param]:
    """Return the params by which a person limits, pauses or resumes the copy."""
    return {
        "action": Param(
            type="string",
            enum=list(PACE_ACTIONS),
            title="What",
            description_md=f"`{LIMIT}`: the copy and the proof use at most as much as the field below says. "
            f"`{PAUSE}`: nothing is copied, and the copies keep their positions. `{RESUME}`: they go on.",
        ),
        "bytes_per_second": Param(
            None,
            type=["null", "integer"],
            minimum=1,
            title="Bytes per second",
            description_md=f"Only for `{LIMIT}`; counts keys and values of all tasks of a job. Empty: no limit.",
        ),
        "reason": _reason(),
    }


def snapshot_params() -> dict[str, Param]:
    """Return the params of a snapshot."""
    return {
        "from_scratch": Param(
            False,
            type="boolean",
            title="From scratch",
            description_md="Read the whole changelogs, instead of building on the snapshot of an earlier day. "
            "Read them up to their present end, instead of up to the point at which this day was built before.",
        )
    }


def retire_params(application: Application) -> dict[str, Param]:
    """Return the params of a retirement. The name has no default, so that nobody retires topics by mistake."""
    name = application.application_id
    return {
        "dry_run": _dry_run(),
        "confirm": Param(
            None,
            type=["null", "string"],
            pattern="^" + name.replace(".", r"\.") + "$",
            title="Application to confirm",
            description_md="The run deletes the topics of all generations before the running one, for good. Type "
            f"`{name}` to confirm. Empty: only a dry run is possible.",
        ),
    }


def accept_params() -> dict[str, Param]:
    """Return the params of an acceptance. They have no defaults, so that nobody accepts anything by mistake."""
    return {
        "findings": Param(
            type="array",
            items={"type": "string"},
            minItems=1,
            title="Findings",
            description_md="One finding per line. Copy the names from the log of `verify` or `callback`, from the "
            "page or from `status`: `<topic>-<partition>:<first offset>-<last offset>` or `<store>@<digest>`.",
        ),
        "reason": Param(
            type="string",
            minLength=1,
            title="Reason",
            description_md="Why these findings may be accepted. The report keeps it, with your name.",
        ),
    }


def roll_back_params() -> dict[str, Param]:
    """Return the params of a manual rollback."""
    return {
        "reason": Param(
            "asked for by a person",
            type="string",
            minLength=1,
            description_md="Why the expansion is rolled back. The journal keeps it.",
        )
    }
