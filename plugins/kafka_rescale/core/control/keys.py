"""The control topic's name, and the concerns that its keys name."""

from __future__ import annotations

from enum import StrEnum

CONTROL_TOPIC = "_kafka_rescale"
LARGEST_RECORD_BYTES = 10 * 1024 * 1024
"""What the control topic takes, and what its writers send, in one record."""


class Concern(StrEnum):
    """The second half of a control record's key, ``<application>/<concern>[/<detail>]``."""

    LEASE = "lease"
    JOURNAL = "journal"
    SWITCH = "switch"
    PACE = "pace"
    RATE = "rate"
    GENERATIONS = "generations"
    BRIDGE = "bridge"
    REPLACED = "replaced"
    AUTOSCALING = "autoscaling"
    PROCESSING = "processing"
    PROCESSORS = "processors"
    RESULT = "result"
    SIGN = "sign"
    REPORT = "report"
    PROOF = "proof"
    PROOF_PROGRESS = "proof-progress"
    ROLLING_PROOF = "rolling-proof"
    ACCEPTANCES = "acceptances"
    HISTORY = "history"
