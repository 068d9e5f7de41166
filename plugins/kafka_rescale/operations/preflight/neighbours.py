"""The other application files that name an input or an output of an application."""

from __future__ import annotations

from kafka_rescale.core.errors import InvalidInput
from kafka_rescale.core.plan.shared_inputs import Declared
from kafka_rescale.core.preflight.described import Described
from kafka_rescale.operations.application.load import application_files, load_application, topology_of


def neighbours(known: Described) -> tuple[Declared, ...]:
    """Return the applications that read or write a topic of this one, as their files beside this one declare them.

    A file that can't be used is left out.
    """
    own = known.application
    topics = {known.full_name(i.topic) for i in own.inputs} | {o.topic for o in own.outputs}
    found: list[Declared] = []
    try:
        files = application_files()
    except InvalidInput:
        return ()
    for file in files:
        try:
            # Most files have nothing to do with this application, and need not be parsed.
            text = file.read_text(errors="replace")
            other = load_application(file) if any(topic in text for topic in topics) else own
        except Exception:  # also what a function of the user raises when its module is imported
            continue
        if other.application_id != own.application_id:
            found.append((other, topology_of(other)))
    return tuple(found)
