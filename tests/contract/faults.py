"""The faults that an issue says must be tested, in its own words and order, and the tests that plant each."""

from typing import Final

_CHAIN: Final = "unit/sdk/test_hook_chain.py"
_RESOLVE: Final = "unit/sdk/test_plugins_resolve.py"
_RPC: Final = "integration/remote_hooks/test_jsonrpc_calls.py"
_MCP: Final = "integration/remote_hooks/test_mcp_calls.py"
_HEALTH: Final = "integration/remote_hooks/test_health.py"
_SLASH: Final = "integration/test_slash_commands.py"
_ENGINE: Final = "integration/engine/test_commands.py"
_HOOK_FAULTS: Final = "e2e/test_hook_faults.py"
_COMMANDS: Final = "security/test_commands.py"
_ROLES: Final = "security/test_command_roles.py"
_BODIES: Final = "security/test_remote_bodies.py"

_HOSTILE: Final = (
    f"{_COMMANDS}::test_hostile_arguments_run_nothing_touch_no_file_and_reach_no_model",
    f"{_COMMANDS}::test_a_sub_tasks_hostile_description_is_data_in_a_block_that_it_cannot_leave",
    "unit/sdk/test_builtin_commands.py::test_no_body_reaches_for_a_file_a_process_or_the_network",
)

HOOKS_AND_COMMANDS: Final[dict[str, tuple[str, ...]]] = {
    "an executor raises": (
        f"{_CHAIN}::test_a_failure_ends_the_chain_unless_the_executor_may_be_done_without",
        f"{_SLASH}::test_a_handler_that_raises_is_answered_in_its_words_and_logged_and_the_task_stays",
        "integration/executors/test_jsonrpc.py::test_a_body_that_raises_tells_fixed_words_and_a_correlation_id",
        f"{_MCP}::test_an_executor_that_raised_is_a_failure_and_not_one_of_the_transport",
    ),
    "hangs past its deadline": (
        f"{_CHAIN}::test_an_executor_that_hangs_fails_at_its_deadline",
        f"{_CHAIN}::test_the_deadline_holds_for_a_plain_function_that_blocks",
        f"{_RPC}::test_an_executor_that_hangs_fails_at_its_deadline",
        f"{_MCP}::test_a_tool_that_hangs_fails_at_its_deadline",
        f"{_HOOK_FAULTS}::test_a_service_that_dies_or_hangs_in_a_call_is_a_reply_within_its_deadline",
    ),
    "returns the wrong type": (
        f"{_CHAIN}::test_an_answer_of_the_wrong_type_is_a_failure_and_no_consent",
        f"{_RPC}::test_a_reply_of_the_wrong_type_fails_at_the_chain",
        f"{_BODIES}::test_an_answer_out_of_contract_is_a_failed_reply_and_changes_nothing",
    ),
    "returns 10 MB": (
        f"{_CHAIN}::test_a_result_of_10_mb_is_a_failure",
        f"{_RPC}::test_ten_megabytes_are_cut_at_the_bound",
        f"{_BODIES}::test_an_answer_out_of_contract_is_a_failed_reply_and_changes_nothing",
    ),
    "dies mid-reply": (
        f"{_HOOK_FAULTS}::test_a_service_that_dies_or_hangs_in_a_call_is_a_reply_within_its_deadline",
        f"{_BODIES}::test_an_answer_out_of_contract_is_a_failed_reply_and_changes_nothing",
        f"{_MCP}::test_a_body_is_called_once_when_its_connection_breaks",
    ),
    "is down at start": (
        f"{_HEALTH}::test_a_service_that_is_down_at_start_is_seen_down_and_then_up",
        f"{_RPC}::test_a_service_that_is_down_at_start_is_used_when_it_is_there",
        f"{_BODIES}::test_a_service_that_is_down_is_a_failed_reply_and_changes_nothing",
    ),
    "comes back": (
        f"{_HEALTH}::test_a_service_that_is_down_at_start_is_seen_down_and_then_up",
        f"{_RPC}::test_the_breaker_opens_after_five_failures_and_one_trial_closes_it",
        f"{_MCP}::test_a_dead_service_fails_at_once_and_is_used_when_it_is_back",
    ),
    "two plugins with the same command": (
        f"{_RESOLVE}::test_the_second_plugin_with_a_command_of_one_name_loses_it_and_its_body",
        f"{_RESOLVE}::test_nobody_takes_the_name_of_a_built_in",
    ),
    "invalid names": (
        f"{_RESOLVE}::test_a_command_with_an_invalid_name_falls_with_its_body",
        "unit/sdk/test_command_registry.py::test_an_invalid_name_raises_and_leaves_nothing",
    ),
    "a command with no body": (f"{_RESOLVE}::test_a_command_without_a_body_falls",),
    "a body with no command": (f"{_RESOLVE}::test_a_body_for_a_command_that_nobody_declares_falls",),
    "arguments with shell metacharacters": _HOSTILE,
    "arguments with path separators": _HOSTILE,
    "arguments with control characters": _HOSTILE,
    "arguments of 100 kB": _HOSTILE,
    "arguments with right-to-left marks": _HOSTILE,
    "arguments with a prompt injection": _HOSTILE,
    "/model to an unlisted model": (f"{_COMMANDS}::test_a_model_that_is_not_listed_is_refused_and_the_old_one_stays",),
    "/effort maximum": (f"{_COMMANDS}::test_an_effort_that_there_is_not_is_refused_and_the_old_one_stays",),
    "commands from a watcher": (f"{_ROLES}::test_the_table",),
    "commands from a stranger": (f"{_ROLES}::test_the_table",),
    "commands from nobody": (f"{_ROLES}::test_the_table",),
    "a command while the model runs": (
        f"{_COMMANDS}::test_a_command_while_the_model_runs_changes_no_turn_and_takes_none",
        f"{_ENGINE}::test_a_command_is_instant_while_a_turn_runs",
    ),
    "a command while parked": (f"{_ENGINE}::test_a_command_is_answered_without_the_model_and_leaves_the_task_parked",),
    "a command on an ended task": (f"{_COMMANDS}::test_a_command_on_an_ended_task_is_refused",),
    # A model cannot spawn one before issue 4: its words, a goal, and what a forwarder marks are what there is.
    'a model that spawns a child with the goal "/model big"': (
        f"{_COMMANDS}::test_a_sub_task_whose_goal_is_a_command_runs_none",
        f"{_COMMANDS}::test_what_a_model_writes_is_never_a_command",
        f"{_COMMANDS}::test_a_literal_message_is_words_also_as_a_first_one",
    ),
    "a remote body claiming a state change in its text": (
        f"{_BODIES}::test_text_that_claims_a_state_change_changes_nothing_and_no_model_reads_it",
        f"{_ROLES}::test_a_reply_that_says_what_became_of_the_task_changes_nothing",
    ),
    "ten thousand /sub-task in a minute": (
        "security/test_floods.py::test_a_flood_of_sub_tasks_meets_the_rate_and_others_are_served",
        "security/test_floods.py::test_a_task_has_so_many_open_sub_tasks_however_slowly_they_are_made",
    ),
}
"""Of issue 3."""
