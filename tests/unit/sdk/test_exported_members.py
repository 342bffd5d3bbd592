"""The SDK's public names."""

import tiny_harness

PUBLIC = """
AWAITING_ANSWER AWAITING_APPROVAL AWAITING_BUDGET AWAITING_NEXT_MESSAGE AddParticipant Address AlreadyAnswered
AlreadyRunning BUILTIN_COMMANDS CommandAnswer CommandContext CommandFailed CommandOffer CommandRegistry CommandResult
CommandSpec CompletionContext ConfigError ConfigPath ConnectionLost CreateSubTask Executor ExecutorApp HarnessClient
HarnessError HookAbort HookContext HookFailed HookTransportError InvalidInput ModelContext OPERATIONS ObservedContext
Plugin PluginReport Question RefusedByPolicy RegistryError RemoteDeclaration RequestContext RoleNotPermitted
RunningHarness SetEffort SetModel Settings SignInRefused TaskCreatedContext TaskEnded TaskNotCancelable TaskNotFound
TaskState TaskView TurnResult Unavailable UnresolvedSubTasks WindowContext __version__ builtin_executors call_function
connect default_config default_home describe find_host load_app load_plugins open_harness open_store prepare_home
require_model_key resolve_config running_harness running_worker serving_executors
"""


def test_the_public_names_are_these() -> None:
    assert sorted(tiny_harness.__all__) == sorted(PUBLIC.split())


def test_every_public_name_resolves() -> None:
    for name in tiny_harness.__all__:
        assert getattr(tiny_harness, name) is not None
