"""The SDK's public names."""

import tiny_harness

PUBLIC = """
AWAITING_ANSWER AWAITING_NEXT_MESSAGE Address AlreadyRunning ConfigError ConfigPath ConnectionLost HarnessClient
HarnessError InvalidInput RoleNotPermitted RunningHarness Settings TaskEnded TaskNotCancelable TaskNotFound TaskState
TaskView TurnResult Unavailable __version__ connect default_config default_home describe find_host open_harness
open_store prepare_home require_model_key resolve_config running_harness running_worker
"""


def test_the_public_names_are_these() -> None:
    assert sorted(tiny_harness.__all__) == sorted(PUBLIC.split())


def test_every_public_name_resolves() -> None:
    for name in tiny_harness.__all__:
        assert getattr(tiny_harness, name) is not None
