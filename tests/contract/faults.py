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
    'a model that spawns a child with the goal "/model big"': (
        f"{_COMMANDS}::test_a_sub_task_whose_goal_is_a_command_runs_none",
        f"{_COMMANDS}::test_what_a_model_writes_is_never_a_command",
        f"{_COMMANDS}::test_a_literal_message_is_words_also_as_a_first_one",
        "integration/engine/test_loop.py::test_a_spawned_goal_that_looks_like_a_command_is_words",
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

_STDIO: Final = "integration/tools/test_stdio_servers.py"
_HTTP: Final = "integration/tools/test_http_servers.py"
_LOOP: Final = "integration/engine/test_loop.py"
_WORK: Final = "integration/engine/test_work_faults.py"
_AGENTS: Final = "integration/agents/test_stand_ins.py"
_LOSSES: Final = "integration/agents/test_losses.py"
_MODELS: Final = "integration/models/test_failures.py"
_STORY: Final = "e2e/test_demo_kills.py"
_PLACES: Final = "e2e/test_kill_places.py"

AGENT_CORE: Final[dict[str, tuple[str, ...]]] = {
    "an MCP server dies before a call": (
        f"{_STDIO}::test_while_a_server_is_down_its_tools_stay_and_calls_fail_at_once",
        f"{_HTTP}::test_a_server_that_is_not_there_is_down_with_the_reason",
    ),
    "an MCP server dies during a call": (
        f"{_STDIO}::test_a_server_that_dies_in_a_call_fails_every_running_call_and_comes_back",
        f"{_HTTP}::test_a_killed_server_fails_its_calls_and_is_found_again",
    ),
    "an MCP server dies after a call": (
        f"{_STDIO}::test_a_restart_with_another_schema_is_drift_too",
        f"{_STDIO}::test_a_server_that_closes_its_output_is_ended",
    ),
    "a tool hangs": (
        f"{_STDIO}::test_a_tool_that_hangs_is_cancelled_at_its_deadline",
        f"{_HTTP}::test_a_call_is_cancelled_at_its_deadline",
    ),
    "a tool returns 5 MB": (f"{_STDIO}::test_five_megabytes_are_cut_and_say_so",),
    "a tool returns binary": (f"{_STDIO}::test_binary_content_is_described",),
    "a tool returns an invalid structure": (
        f"{_STDIO}::test_structured_content_against_the_tools_own_schema_is_left_out",
        f"{_HTTP}::test_a_server_that_cheats_is_told_from_one_that_answers",
    ),
    "a tool returns an injection": (f"{_STDIO}::test_a_result_cannot_close_its_block",),
    "the schema changes under us": (
        f"{_STDIO}::test_a_call_with_an_old_hash_is_refused_and_the_new_listing_is_there",
        f"{_HTTP}::test_a_changed_listing_is_noticed",
        f"{_HTTP}::test_a_listing_that_changes_in_silence_is_found_by_looking",
    ),
    "an unknown tool": (
        f"{_LOOP}::test_unknown_tools_and_wrong_arguments_are_results_for_the_model",
        f"{_STDIO}::test_an_unknown_tool_is_refused",
    ),
    "wrong arguments": (
        f"{_LOOP}::test_unknown_tools_and_wrong_arguments_are_results_for_the_model",
        f"{_STDIO}::test_wrong_arguments_are_refused_with_their_place_and_nothing_is_sent",
    ),
    "a hundred calls in one step": (f"{_WORK}::test_a_hundred_calls_in_one_step_all_get_their_results",),
    "a plan with a cycle": (
        "unit/engine/test_plan.py::test_a_cycle_is_named_in_the_direction_of_the_dependencies",
        "unit/engine/test_plan.py::test_any_cycle_is_found_and_named_truly",
    ),
    "a child that fails": (
        f"{_WORK}::test_a_child_that_fails_is_read_by_its_parent_with_the_reason",
        f"{_AGENTS}::test_an_agent_that_fails_is_a_child_that_has_failed",
    ),
    "a child that is cancelled": (f"{_WORK}::test_a_child_that_is_cancelled_is_read_by_its_parent",),
    "a child that is never answered": (
        f"{_WORK}::test_a_child_that_is_never_answered_keeps_its_parent_from_completing",
        f"{_AGENTS}::test_an_agent_that_takes_the_work_and_never_answers_is_found_out",
    ),
    "a remote agent that is down": (
        f"{_AGENTS}::test_an_agent_that_is_down_is_waited_for_and_given_the_work_once",
        f"{_AGENTS}::test_an_agent_that_stays_down_fails_its_child_with_the_reason",
    ),
    "a remote agent that is slow": (f"{_AGENTS}::test_a_slow_agent_is_not_given_the_work_twice",),
    "a remote agent that lies about its card": (
        f"{_AGENTS}::test_a_card_that_demands_what_we_do_not_know_fails_the_child_at_once",
        "unit/engine/test_agents_card.py",
    ),
    "a remote agent that closes its streams": (f"{_AGENTS}::test_streams_that_close_at_once_do_no_harm",),
    "a remote agent that forgets tasks": (f"{_AGENTS}::test_an_agent_that_forgets_its_task_fails_the_child",),
    "the provider answers 429 or 500": (
        f"{_MODELS}::test_a_passing_refusal_may_be_asked_again",
        f"{_MODELS}::test_when_to_come_again_is_told",
    ),
    "the provider answers half a stream": (f"{_MODELS}::test_garbage_half_and_empty_answers_may_be_asked_again",),
    "the provider answers nested garbage": (f"{_MODELS}::test_garbage_half_and_empty_answers_may_be_asked_again",),
    "the provider answers a tool call cut in two": (
        f"{_MODELS}::test_a_tool_call_that_its_bound_cut_in_two_is_not_run",
        f"{_MODELS}::test_garbage_half_and_empty_answers_may_be_asked_again",
    ),
    "a context of 200k tokens with 200 tool calls": (
        "integration/engine/test_long_work.py::test_two_hundred_tool_calls_stay_small",
        "unit/engine/test_compaction.py::test_two_hundred_tool_calls_on_a_long_conversation_always_fit",
    ),
    "the engine is killed around a tool's call": (
        f"{_STORY}::test_the_story_survives_kills_as_a_sub_task_starts_and_in_a_refund_that_may_be_made_once",
        f"{_LOOP}::test_a_call_that_may_not_be_made_twice_is_asked_about_after_its_worker_died",
        f"{_LOOP}::test_an_idempotent_call_is_made_again_after_its_worker_died",
    ),
    "the engine is killed at any step of a story": (f"{_STORY}::test_the_story_ends_the_same_wherever_it_is_killed",),
    "the engine is killed around a model's answer": (
        "e2e/test_kill.py::test_a_conversation_survives_a_kill_at_every_step",
    ),
    "the engine is killed in each of these places": (
        f"{_PLACES}::test_work_survives_a_kill_in_each_place",
        f"{_PLACES}::test_work_survives_kills_in_a_hanging_call_at_a_childs_failure_and_after_a_summary",
        f"{_PLACES}::test_a_child_that_is_never_answered_is_still_waited_for_after_a_kill",
    ),
    "the engine is killed with a child elsewhere": (
        "integration/agents/test_kill.py::test_a_harness_that_is_killed_goes_on_where_it_was",
        f"{_LOSSES}::test_an_engine_that_stops_while_it_sends_sends_no_second_time",
    ),
    "the engine is killed and takes a tool's process with it": (
        "integration/tools/test_kill.py::test_no_child_outlives_its_host",
    ),
}
"""Of issue 4; the kills are those of its last line, by the place where they strike."""

_PUSH: Final = "integration/test_push.py"
_DELIVERY: Final = "integration/test_push_delivery.py"
_PUSH_ADDRESS: Final = "unit/sdk/test_push_address.py"

PUSH: Final[dict[str, tuple[str, ...]]] = {
    "a receiver is slow": (
        f"{_PUSH}::test_one_that_does_not_answer_holds_up_neither_the_task_nor_another_receiver",
        f"{_DELIVERY}::test_an_answer_that_comes_drop_by_drop_is_given_up",
        f"{_DELIVERY}::test_a_slow_receiver_ends_an_activity_between_two_events",
    ),
    "a receiver is dead, or gone": (f"{_PUSH}::test_a_receiver_that_is_gone_or_never_there_is_disabled_and_counted",),
    "a receiver fails, or redirects": (
        f"{_PUSH}::test_what_a_receiver_does_not_take_is_told_again_in_order_and_holds_nobody_up",
    ),
    "a receiver answers without end": (f"{_DELIVERY}::test_an_endless_answer_is_not_read",),
    "an engine restarts between deliveries": (
        f"{_PUSH}::test_what_happened_while_no_engine_was_there_is_told_by_the_next_one",
    ),
    "an address leads into a private network": (
        f"{_PUSH_ADDRESS}::test_an_address_that_is_not_on_the_internet_is_refused_however_it_is_written",
        f"{_PUSH_ADDRESS}::test_one_bad_address_among_a_names_addresses_refuses_it",
        f"{_PUSH}::test_what_must_not_be_asked_for_is_refused_with_the_field_and_sends_no_message",
    ),
    "a name changes between check and connection": (
        f"{_DELIVERY}::test_the_address_that_was_checked_is_the_one_that_is_connected_to",
        f"{_DELIVERY}::test_a_name_that_leads_inwards_by_now_is_not_connected_to",
        f"{_DELIVERY}::test_the_certificate_has_to_be_the_names_though_the_address_is_connected_to",
    ),
    "somebody tries the configurations of others": (
        f"{_PUSH}::test_each_sees_their_own_and_what_is_others_is_as_if_it_were_not_there",
    ),
    "a maker has lost their role": (f"{_DELIVERY}::test_who_has_no_role_any_more_is_told_nothing_and_forgotten",),
}
