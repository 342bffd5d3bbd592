"""The store: a port, its statements and its adapters."""

from tiny_harness.store.open import migrate_store, open_store
from tiny_harness.store.port import (
    CallRow,
    CancelRequest,
    ChangedTask,
    Commit,
    Committed,
    EngineReport,
    KeptToken,
    KeptVerdict,
    NewEvent,
    Reading,
    StepRow,
    Store,
    TaskPage,
    TaskQuery,
    TaskRecord,
    Written,
)

__all__ = [
    "CallRow",
    "CancelRequest",
    "ChangedTask",
    "Commit",
    "Committed",
    "EngineReport",
    "KeptToken",
    "KeptVerdict",
    "NewEvent",
    "Reading",
    "StepRow",
    "Store",
    "TaskPage",
    "TaskQuery",
    "TaskRecord",
    "Written",
    "migrate_store",
    "open_store",
]
