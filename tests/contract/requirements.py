"""Every numbered requirement and abuse case of the specification, and the tests that show it.

A row is a tuple of `file::test` names, or `pending("N")` while issue N is open. Names follow the documents: `R3.1` is
requirement 3.1 of requirements-seamless-cli, `A7` its abuse case 7, `F1` the first line of "Fail closed", `D3` point 3
of decision-007, `C5` the fifth line of "Current behaviour" of capability-tasks-and-plans, `S2` the second decision of
adr-042.
"""

from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True, slots=True)
class pending:
    """A requirement whose issue is still open."""

    issue: str


OPEN_ISSUES: Final = frozenset({"5", "6"})

_CLI: Final = "e2e/test_cli.py"
_PATHS: Final = "unit/sdk/test_paths.py"
_CONFIG: Final = "unit/sdk/test_config_file.py"
_LIFE: Final = "unit/engine/test_lifecycle.py"
_TASK: Final = "integration/engine/test_task_workflow.py"
_LOOP: Final = "integration/engine/test_loop.py"
_OPS: Final = "integration/gateway/test_operations.py"
_ACCESS: Final = "security/test_gateway_access.py"
_SIGN_IN: Final = "security/test_sign_in.py"
_STREAMS: Final = "integration/gateway/test_streams.py"
_TUI: Final = "unit/sdk/test_tui_app.py"
_TUI_STORY: Final = "e2e/test_tui_story.py"
_TUI_TWO: Final = "e2e/test_tui_reconnect.py"
_TUI_COMMANDS: Final = "unit/sdk/test_tui_commands.py"
_INTAKE: Final = "unit/sdk/test_intake.py"
_REGISTRY: Final = "unit/sdk/test_command_registry.py"
_BUILT_INS: Final = "unit/sdk/test_builtin_commands.py"
_CHAIN: Final = "unit/sdk/test_hook_chain.py"
_POINTS: Final = "unit/sdk/test_hook_points.py"
_LOADING: Final = "unit/sdk/test_plugins_loading.py"
_RESOLVE: Final = "unit/sdk/test_plugins_resolve.py"
_ENGINE: Final = "integration/engine/test_commands.py"
_HOOKS: Final = "integration/engine/test_hooks.py"
_GATEWAY: Final = "integration/gateway/test_commands.py"
_SLASH: Final = "integration/test_slash_commands.py"
_RPC: Final = "integration/remote_hooks/test_jsonrpc_calls.py"
_PLUGINS: Final = "e2e/test_plugins.py"
_REQUESTS: Final = "contract/test_model_requests.py"
_GOLDEN: Final = "integration/models/test_golden_bodies.py"
_ABUSE: Final = "security/test_commands.py"
_ROLES: Final = "security/test_command_roles.py"
_BODIES: Final = "security/test_remote_bodies.py"
_FLOODS: Final = "security/test_floods.py"
_SUPERVISED: Final = "integration/engine/test_supervision.py"
_WORKERS: Final = "integration/test_workers.py"
_DAYS: Final = "integration/supervision/test_days.py"
_PAGE: Final = "web/test_page.py"
_BOTH: Final = "web/test_both.py"

REQUIREMENTS: Final[dict[str, tuple[str, ...] | pending]] = {
    # 1: the command works straight after installation
    "R1.1": (f"{_CLI}::test_help_lists_every_command_and_names_the_configuration_in_effect",),
    "R1.2": ("integration/test_tui.py::test_a_person_holds_a_conversation_and_leaves",),
    "R1.3": (f"{_CLI}::test_plain_mode_holds_a_conversation_over_pipes",),
    "R1.4": (
        "integration/test_cli_schedules.py::test_the_schedule_is_deleted_once_nobody_else_has_the_embedded_temporal",
        f"{_CLI}::test_help_lists_every_command_and_names_the_configuration_in_effect",
    ),
    "R1.5": (f"{_CLI}::test_help_lists_every_command_and_names_the_configuration_in_effect",),
    # 2: a default configuration file
    "R2.1": (f"{_PATHS}::test_the_given_file_comes_first_and_the_home_second",),
    "R2.2": (f"{_CLI}::test_a_given_file_that_is_missing_is_not_made",),
    "R2.3": (f"{_CLI}::test_a_given_file_that_is_missing_is_not_made",),
    "R2.4": (f"{_CLI}::test_a_first_send_without_a_key_makes_the_file_and_names_the_ways_on",),
    "R2.5": (
        f"{_PATHS}::test_the_made_file_is_valid_and_keeps_everything_under_the_home",
        f"{_PATHS}::test_every_key_of_the_made_file_is_explained_above_it",
    ),
    "R2.6": (f"{_PATHS}::test_a_file_that_is_there_is_never_changed",),
    "R2.7": (
        f"{_CLI}::test_a_bad_default_file_is_named_and_not_replaced",
        f"{_CONFIG}::test_invalid_toml_names_the_line",
    ),
    "R2.8": (f"{_CONFIG}::test_a_relative_path_is_relative_to_the_working_directory",),
    # 3: a reply does not complete the task
    "R3.1": (
        f"{_LIFE}::test_a_reply_parks_a_conversation_and_never_completes_it",
        f"{_TASK}::test_a_conversation_parks_after_each_reply_and_goes_on",
    ),
    "R3.2": (f"{_LOOP}::test_a_question_parks_the_task_and_the_answer_goes_on",),
    "R3.3": (f"{_LIFE}::test_a_parked_task_resumes_in_working_and_drops_its_sub_state",),
    "R3.4": (
        f"{_LOOP}::test_sub_tasks_work_by_themselves_and_their_results_are_read",
        f"{_LOOP}::test_a_task_for_a_participant_ends_with_their_reply",
    ),
    "R3.5": (
        f"{_LIFE}::test_a_delegated_task_waits_for_its_sub_tasks_and_goes_on_with_the_news",
        "integration/engine/test_commands.py::test_complete_with_an_open_sub_task_is_refused_and_names_it",
    ),
    "R3.6": (
        f"{_TASK}::test_a_run_lost_with_temporals_database_is_rebuilt_from_the_store",
        f"{_STREAMS}::test_a_reconnect_at_every_event_misses_and_repeats_none",
    ),
    # 4: sub-states as an extension
    "R4.1": ("unit/engine/test_wire.py::test_a_reply_that_parks_carries_its_sub_state_in_the_status_metadata",),
    "R4.2": (
        "integration/gateway/test_protocol.py::test_the_card_tells_bindings_extensions_and_scheme_and_is_cached",
        "contract/test_extension_schemas.py",
    ),
    "R4.3": (
        "contract/test_extension_schemas.py",
        "unit/sdk/test_states.py::test_an_unknown_sub_state_shows_as_plain_input_required",
    ),
    "R4.4": ("e2e/test_official_clients.py::test_the_python_client_holds_a_conversation",),
    # 5: complete and cancel
    "R5.1": (
        f"{_OPS}::test_complete_ends_a_task_and_the_next_message_is_refused_with_the_way_on",
        f"{_PAGE}::test_the_whole_story_is_told_by_keys_alone",
        f"{_BOTH}::test_what_one_surface_does_the_other_shows_and_its_list_too",
    ),
    "R5.2": (
        f"{_LIFE}::test_complete_ends_any_open_task",
        f"{_TASK}::test_complete_cuts_a_running_turn_for_real",
        f"{_BOTH}::test_what_one_surface_does_the_other_shows_and_its_list_too",
    ),
    "R5.3": (
        f"{_LIFE}::test_an_ended_task_takes_nothing_and_says_its_state",
        f"{_OPS}::test_cancel_ends_a_parked_and_a_working_task_and_only_once",
        f"{_PAGE}::test_cancel_asks_once_in_place_and_a_message_goes_on_in_the_same_context",
    ),
    "R5.4": (
        f"{_SLASH}::test_complete_names_the_open_sub_tasks_in_its_refusal",
        f"{_ENGINE}::test_complete_with_an_open_sub_task_is_refused_and_names_it",
        f"{_HOOKS}::test_a_hook_overrides_the_rule_about_open_sub_tasks",
        f"{_GATEWAY}::test_a_refusal_of_the_engine_is_told_with_its_data",
        f"{_PAGE}::test_an_unresolved_sub_task_refuses_completion_in_words_and_loses_nothing",
    ),
    "R5.5": (
        f"{_TUI}::test_complete_ends_the_task",
        f"{_TUI}::test_cancel_asks_once_in_place",
        f"{_TUI_STORY}::test_the_whole_story_is_told_by_keys_alone",
        "unit/sdk/test_tui_keys.py::test_what_cannot_be_done_now_is_dimmed_in_the_line_of_keys_and_not_hidden",
        f"{_PAGE}::test_the_whole_story_is_told_by_keys_alone",
        f"{_PAGE}::test_cancel_asks_once_in_place_and_a_message_goes_on_in_the_same_context",
    ),
    "R5.6": (
        f"{_TUI}::test_another_surface_completes_the_task_and_a_message_starts_a_new_one_in_its_context",
        f"{_TUI_TWO}::test_what_one_surface_does_shows_on_the_other_and_in_its_list_without_a_reload",
        f"{_PAGE}::test_what_another_surface_does_shows_without_a_reload",
        f"{_BOTH}::test_what_one_surface_does_the_other_shows_and_its_list_too",
    ),
    "R5.7": (
        f"{_TUI}::test_a_conversation_goes_on_in_the_same_task",
        "unit/sdk/test_states.py::test_a_sub_state_shows_only_while_input_is_required",
        "web/test_modules.py::test_the_page_says_the_same_words_for_states_as_every_surface",
        f"{_BOTH}::test_what_one_surface_does_the_other_shows_and_its_list_too",
    ),
    # 6 to 10: commands
    "R6.1": (
        f"{_REGISTRY}::test_a_valid_name_is_taken",
        f"{_ENGINE}::test_a_command_from_code_runs_and_its_failure_is_its_reply",
        f"{_SLASH}::test_clients_are_told_the_commands_with_description_and_hint",
    ),
    "R6.2": (
        f"{_INTAKE}::test_a_text_of_a_commands_shape_is_taken_apart",
        f"{_ENGINE}::test_a_command_is_answered_without_the_model_and_leaves_the_task_parked",
        f"{_ENGINE}::test_a_command_as_a_first_message_starts_a_parked_conversation",
    ),
    "R6.3": (f"{_ABUSE}::test_what_is_no_registered_command_is_words_for_the_model_like_any",),
    "R6.4": (
        f"{_SLASH}::test_every_client_gets_the_same_reply_from_the_same_text",
        f"{_PLUGINS}::test_every_surface_gets_the_same_answers",
    ),
    "R6.5": (
        f"{_INTAKE}::test_any_other_text_is_none",
        f"{_REGISTRY}::test_an_invalid_name_raises_and_leaves_nothing",
        f"{_REGISTRY}::test_a_taken_name_raises_and_the_first_stays",
        f"{_RESOLVE}::test_what_falls_of_a_plugin_made_in_code_is_an_error",
    ),
    "R6.6": (f"{_SLASH}::test_a_handler_that_raises_is_answered_in_its_words_and_logged_and_the_task_stays",),
    "R6.7": (
        f"{_SLASH}::test_clients_are_told_the_commands_with_description_and_hint",
        f"{_GATEWAY}::test_the_card_lists_the_commands_of_the_current_catalogue",
        f"{_TUI_COMMANDS}::test_a_slash_lists_the_commands_and_typing_narrows_them",
        f"{_PAGE}::test_slash_commands_are_offered_chosen_and_run_by_keys",
        f"{_BOTH}::test_what_one_surface_does_the_other_shows_and_its_list_too",
    ),
    "R6.8": (
        f"{_RESOLVE}::test_the_built_in_plugin_stands_whole",
        f"{_ENGINE}::test_without_the_built_ins_their_names_are_words",
    ),
    # 6a: through the hook system
    "R6a.1": (
        f"{_POINTS}::test_a_command_can_be_refused_and_changed_in_all_phases",
        f"{_SLASH}::test_all_phases_are_shown_name_arguments_task_and_sender",
        "contract/test_hook_catalogue.py::test_what_an_executor_is_shown_is_what_the_schema_says",
    ),
    "R6a.2": (
        f"{_SLASH}::test_all_phases_are_shown_name_arguments_task_and_sender",
        f"{_BUILT_INS}::test_every_command_has_one_body_at_the_default_priority",
    ),
    "R6a.3": (
        f"{_BUILT_INS}::test_every_command_has_one_body_at_the_default_priority",
        f"{_ENGINE}::test_a_lower_priority_replaces_a_built_in",
        f"{_RESOLVE}::test_the_built_in_plugin_stands_whole",
    ),
    "R6a.4": (
        f"{_ENGINE}::test_pre_replaces_the_arguments_and_post_the_reply",
        f"{_ENGINE}::test_a_pre_abort_refuses_with_its_reason_and_changes_nothing",
    ),
    "R6a.5": (
        f"{_ENGINE}::test_pre_replaces_the_arguments_and_post_the_reply",
        f"{_SLASH}::test_all_phases_are_shown_name_arguments_task_and_sender",
    ),
    "R6a.6": (
        f"{_SLASH}::test_bodies_in_a_plugins_folder_run_here_and_elsewhere_like_one_from_code",
        f"{_LOADING}::test_a_remote_executor_may_say_everything_itself",
    ),
    "R6a.7": (
        f"{_REGISTRY}::test_a_valid_name_is_taken",
        f"{_SLASH}::test_bodies_in_a_plugins_folder_run_here_and_elsewhere_like_one_from_code",
    ),
    "R6a.8": (
        f"{_RESOLVE}::test_a_command_with_an_invalid_name_falls_with_its_body",
        f"{_RESOLVE}::test_the_second_plugin_with_a_command_of_one_name_loses_it_and_its_body",
        f"{_RESOLVE}::test_a_command_without_a_body_falls",
        "e2e/test_plugin_order.py::test_a_start_logs_what_was_left_out",
    ),
    "R6a.9": (
        f"{_BODIES}::test_an_answer_out_of_contract_is_a_failed_reply_and_changes_nothing",
        f"{_BODIES}::test_a_service_that_is_down_is_a_failed_reply_and_changes_nothing",
        f"{_RPC}::test_a_reply_that_is_out_of_contract_is_a_transport_error",
        f"{_CHAIN}::test_a_failed_transport_stays_what_it_is_with_its_secrets_masked",
    ),
    # 7 to 10: /model, /effort, /sub-task, /status
    "R7.1": (
        f"{_CONFIG}::test_a_list_of_models_that_holds_the_default_is_what_may_be_chosen",
        f"{_CONFIG}::test_a_bad_key_or_value_names_file_and_key",
    ),
    "R7.2": (
        f"{_BUILT_INS}::test_model_shows_the_model_and_the_choice",
        f"{_BUILT_INS}::test_model_shows_the_one_that_was_chosen",
    ),
    "R7.3": (
        f"{_SLASH}::test_a_chosen_model_is_in_the_tasks_metadata_and_asked_by_its_new_sub_tasks",
        f"{_SLASH}::test_a_sub_task_inherits_what_the_same_command_chose",
        f"{_ENGINE}::test_the_model_that_was_chosen_is_asked_from_then_on_and_after_a_restart",
    ),
    "R7.4": (f"{_ABUSE}::test_a_model_that_is_not_listed_is_refused_and_the_old_one_stays",),
    "R7.5": (f"{_SLASH}::test_a_chosen_model_is_in_the_tasks_metadata_and_asked_by_its_new_sub_tasks",),
    "R8.1": (
        f"{_BUILT_INS}::test_effort_changes_to_each_value",
        f"{_REQUESTS}::test_the_configured_effort_counts_where_a_task_has_none",
    ),
    "R8.2": (
        f"{_BUILT_INS}::test_effort_shows_that_none_is_set",
        f"{_BUILT_INS}::test_effort_shows_the_tasks_own_before_the_default",
    ),
    "R8.3": (
        f"{_REQUESTS}::test_a_tasks_effort_is_in_every_later_request_and_adds_nothing_else",
        f"{_ENGINE}::test_an_effort_holds_for_every_later_call",
        f"{_GOLDEN}::test_an_effort_adds_itself_and_nothing_else",
    ),
    "R8.4": (f"{_ABUSE}::test_an_effort_that_there_is_not_is_refused_and_the_old_one_stays",),
    "R8.5": (
        f"{_REQUESTS}::test_without_an_effort_a_request_is_what_it_is_without_efforts",
        f"{_GOLDEN}::test_without_effort_the_body_is_the_golden_one_byte_for_byte",
        f"{_GOLDEN}::test_no_golden_body_says_anything_of_reasoning",
    ),
    "R9.1": (
        f"{_SLASH}::test_a_sub_task_is_all_that_its_command_promises",
        f"{_ENGINE}::test_a_sub_task_is_a_conversation_of_its_own_under_its_parent",
    ),
    "R9.2": (
        f"{_SLASH}::test_a_sub_task_is_all_that_its_command_promises",
        f"{_ENGINE}::test_a_sub_task_answers_parks_and_tells_its_parent_when_it_is_completed",
    ),
    "R9.3": (f"{_BUILT_INS}::test_sub_task_wants_a_description",),
    "R9.4": (
        f"{_TUI_COMMANDS}::test_a_key_opens_the_sub_task_and_another_goes_back_to_the_parent",
        f"{_TUI_STORY}::test_the_whole_story_is_told_by_keys_alone",
        f"{_PAGE}::test_the_whole_story_is_told_by_keys_alone",
        f"{_BOTH}::test_what_one_surface_does_the_other_shows_and_its_list_too",
    ),
    "R10.1": (
        f"{_SLASH}::test_status_tells_all_that_it_must_and_asks_no_model",
        f"{_BUILT_INS}::test_status_tells_where_the_task_stands",
    ),
    "R10.2": (
        f"{_SLASH}::test_status_tells_all_that_it_must_and_asks_no_model",
        f"{_ENGINE}::test_a_command_is_instant_while_a_turn_runs",
    ),
    # 11: the SDK keeps parity
    "R11.1": (
        "unit/sdk/test_exported_members.py::test_the_public_names_are_these",
        "contract/test_cli_parity.py::test_a_command_calls_what_the_table_says",
    ),
    "R11.2": ("integration/test_local_host.py::test_loading_and_hosting_touch_no_home",),
    "R11.3": (
        "unit/sdk/test_exported_members.py::test_the_public_names_are_these",
        "unit/sdk/test_exported_members.py::test_every_public_name_resolves",
        f"{_SLASH}::test_what_a_program_needs_for_commands_and_completion_is_public",
    ),
    "R11.4": (
        "contract/test_cli_parity.py::test_every_command_is_in_the_table_and_no_other",
        "contract/test_cli_parity.py::test_what_a_command_does_can_be_called",
        "contract/test_cli_parity.py::test_the_command_line_reaches_for_nothing_private_and_for_no_service",
    ),
    # Abuse cases
    "A1": (f"{_ABUSE}::test_a_model_that_is_not_listed_is_refused_and_the_old_one_stays",),
    "A2": (f"{_ABUSE}::test_an_effort_that_there_is_not_is_refused_and_the_old_one_stays",),
    "A3": (
        f"{_ROLES}::test_the_table",
        f"{_ACCESS}::test_a_foreign_task_looks_like_a_missing_one",
        f"{_SIGN_IN}::test_what_is_anothers_looks_missing",
        f"{_SIGN_IN}::test_nobody_speaks_in_the_name_of_another",
    ),
    "A4": (
        f"{_ROLES}::test_the_table",
        f"{_ACCESS}::test_a_watcher_reads_and_does_nothing_else",
        f"{_SIGN_IN}::test_a_watcher_reads_and_does_nothing_else",
    ),
    "A5": (
        f"{_ABUSE}::test_hostile_arguments_run_nothing_touch_no_file_and_reach_no_model",
        f"{_ABUSE}::test_a_sub_tasks_hostile_description_is_data_in_a_block_that_it_cannot_leave",
        f"{_BUILT_INS}::test_no_body_reaches_for_a_file_a_process_or_the_network",
    ),
    "A6": (
        f"{_FLOODS}::test_a_flood_of_sub_tasks_meets_the_rate_and_others_are_served",
        f"{_FLOODS}::test_a_task_has_so_many_open_sub_tasks_however_slowly_they_are_made",
        "security/test_gateway_perimeter.py::test_who_calls_too_often_is_told_when_to_come_back_and_others_go_on",
        "integration/gateway/test_shared_rate.py::test_two_gateways_count_together",
    ),
    "A7": (
        f"{_PATHS}::test_a_symbolic_link_is_refused_and_nothing_is_written_through_it",
        f"{_PATHS}::test_what_belongs_to_another_user_is_refused",
        f"{_CLI}::test_a_linked_home_is_refused",
    ),
    "A8": (f"{_PATHS}::test_a_home_is_made_for_its_owner_alone_whatever_the_umask",),
    "A9": (
        f"{_ABUSE}::test_what_is_no_registered_command_is_words_for_the_model_like_any",
        f"{_ABUSE}::test_a_command_in_another_part_or_beside_one_is_no_command",
    ),
    "A10": (
        f"{_BODIES}::test_arguments_leave_only_after_the_redactor_has_seen_them",
        f"{_BODIES}::test_text_that_claims_a_state_change_changes_nothing_and_no_model_reads_it",
        f"{_BODIES}::test_effects_from_elsewhere_are_judged_by_the_configuration_and_the_senders_role",
        "security/test_secrets.py::test_no_secret_is_told_anywhere",
    ),
    # Fail closed
    "F1": (
        f"{_ROLES}::test_the_table",
        f"{_ACCESS}::test_nobody_speaks_as_the_agent_or_under_a_malformed_name",
        "security/test_gateway_perimeter.py::test_mode_none_takes_names_and_wants_one",
    ),
    "F2": (
        "integration/test_cli_config.py::test_a_fault_in_the_file_ends_with_2_and_names_file_and_key",
        f"{_CONFIG}::test_a_bad_key_or_value_names_file_and_key",
    ),
    "F3": (f"{_CLI}::test_a_linked_home_is_refused", f"{_PATHS}::test_a_home_that_cannot_be_made_is_named"),
    # decision-007
    "D1": (f"{_LIFE}::test_a_reply_parks_a_conversation_and_never_completes_it",),
    "D2": ("unit/engine/test_wire.py::test_a_reply_that_parks_carries_its_sub_state_in_the_status_metadata",),
    "D3": (
        f"{_TASK}::test_complete_cuts_a_running_turn_for_real",
        "unit/sdk/test_intake.py::test_a_control_is_read_with_its_reason",
    ),
    "D4": (
        f"{_INTAKE}::test_the_shape_is_the_one_that_the_design_writes_down",
        f"{_ABUSE}::test_what_is_no_registered_command_is_words_for_the_model_like_any",
        f"{_SLASH}::test_bodies_in_a_plugins_folder_run_here_and_elsewhere_like_one_from_code",
        f"{_BUILT_INS}::test_a_role_may_use_the_commands_that_do_what_it_may_do",
        "unit/engine/test_registry.py::test_a_frozen_table_takes_nothing_more",
        f"{_GATEWAY}::test_the_card_lists_the_commands_of_the_current_catalogue",
    ),
    # capability-tasks-and-plans: the lines of "Current behaviour"
    "C1": (
        f"{_LIFE}::test_a_first_message_starts_a_turn_and_makes_its_sender_the_reporter",
        "unit/engine/test_plan.py::test_the_task_extension_carries_the_plan",
        f"{_INTAKE}::test_an_envelope_with_a_server_controlled_field_is_refused_whole",
        f"{_ABUSE}::test_an_envelope_chooses_no_model_effort_or_lifecycle",
        "contract/test_extension_schemas.py",
    ),
    "C2": (
        "integration/gateway/test_protocol.py::test_the_card_tells_bindings_extensions_and_scheme_and_is_cached",
        "contract/test_extension_schemas.py",
    ),
    "C3": (
        f"{_LOOP}::test_a_plan_is_made_persisted_shown_and_done",
        f"{_LOOP}::test_a_hook_replaces_a_plan_before_it_is_made",
        f"{_LOOP}::test_what_a_hook_makes_of_a_plan_is_checked",
        "unit/engine/test_plan.py::test_any_cycle_is_found_and_named_truly",
        "unit/engine/test_plan.py::test_any_acyclic_plan_runs_to_its_end_and_is_valid_all_the_way",
    ),
    "C4": (
        "unit/engine/test_acting.py::test_a_sub_task_inherits_and_is_linked_from_the_active_step",
        f"{_LOOP}::test_sub_tasks_work_by_themselves_and_their_results_are_read",
        f"{_LOOP}::test_a_task_for_a_participant_ends_with_their_reply",
        "integration/agents/test_two_harnesses.py::test_two_children_here_and_one_in_another_process_are_all_read",
        "integration/agents/test_stand_ins.py::test_an_agent_works_and_its_result_is_read_by_the_parent",
        "integration/engine/test_work_faults.py::test_a_child_that_is_never_answered_keeps_its_parent_from_completing",
        f"{_HOOKS}::test_a_hook_overrides_the_rule_about_open_sub_tasks",
    ),
    "C5": (f"{_LOOP}::test_a_delegated_task_waits_for_its_sub_tasks_and_reads_them_before_it_ends",),
    "C6": (
        f"{_LOOP}::test_a_turn_goes_on_step_by_step_until_the_model_asks_for_nothing",
        f"{_LOOP}::test_unknown_tools_and_wrong_arguments_are_results_for_the_model",
        f"{_LOOP}::test_a_policy_on_tools_sees_the_intrinsic_ones_and_lets_a_person_decide",
        f"{_LOOP}::test_a_long_conversation_is_summed_up_and_goes_on",
    ),
    "C7": (
        f"{_LIFE}::test_a_reply_parks_a_conversation_and_never_completes_it",
        f"{_LIFE}::test_a_delegated_task_completes_with_its_reply",
        f"{_LIFE}::test_a_first_message_without_words_parks_at_once",
        f"{_LIFE}::test_a_parked_task_resumes_in_working_and_drops_its_sub_state",
        f"{_LOOP}::test_a_question_parks_the_task_and_the_answer_goes_on",
        f"{_TASK}::test_refusals_leave_no_history_and_no_event",
        "unit/engine/test_wire.py::test_a_reply_that_parks_carries_its_sub_state_in_the_status_metadata",
    ),
    "C8": (
        f"{_TASK}::test_complete_cuts_a_running_turn_for_real",
        f"{_ENGINE}::test_a_refused_complete_cuts_the_turn_and_parks",
        f"{_ENGINE}::test_complete_with_an_open_sub_task_is_refused_and_names_it",
        f"{_HOOKS}::test_a_hook_refuses_a_completion_and_the_task_parks",
        f"{_HOOKS}::test_a_hook_overrides_the_rule_about_open_sub_tasks",
    ),
    "C9": (
        f"{_SLASH}::test_a_sub_task_is_all_that_its_command_promises",
        f"{_SLASH}::test_a_sub_task_inherits_what_the_same_command_chose",
        f"{_ENGINE}::test_a_sub_task_is_a_conversation_of_its_own_under_its_parent",
        f"{_ENGINE}::test_a_sub_task_answers_parks_and_tells_its_parent_when_it_is_completed",
        "unit/engine/test_acting.py::test_a_sub_task_inherits_and_is_linked_from_the_active_step",
    ),
    "C10": (
        f"{_LIFE}::test_news_of_a_sub_task_are_told_and_the_task_stays_as_it_is",
        f"{_LIFE}::test_the_end_of_a_sub_task_is_a_note_that_an_idle_model_reads_at_once",
        f"{_LIFE}::test_news_of_a_sub_task_do_not_disturb_a_running_turn",
        "integration/engine/test_rows.py"
        "::test_a_participants_sub_task_that_resumes_and_parks_is_shown_and_wakes_no_model",
        "integration/engine/test_rows.py"
        "::test_a_delegated_sub_task_that_asks_is_shown_with_its_question_and_wakes_no_model",
        "integration/agents/test_stand_ins.py::test_the_row_shows_the_childs_own_id_and_each_of_its_states",
    ),
    "C11": (
        f"{_OPS}::test_cancel_ends_a_parked_and_a_working_task_and_only_once",
        f"{_OPS}::test_complete_ends_a_task_and_the_next_message_is_refused_with_the_way_on",
        f"{_TASK}::test_complete_closes_the_run_and_the_task_takes_nothing_more",
        f"{_STREAMS}::test_a_subscription_sends_the_task_first_and_stays_open_until_the_task_ends",
        f"{_STREAMS}::test_two_subscribers_see_the_same_bytes_in_the_same_order",
    ),
    "C12": (
        "unit/sdk/test_client_decode.py::test_a_task_tells_its_plan_and_usage_and_a_change_tells_them_anew",
        "unit/sdk/test_tui_questions.py::test_the_plan_is_a_short_list_around_the_step_that_is_worked_on",
        "unit/sdk/test_tui_plain.py::test_steps_notes_and_the_plan_are_told_on_the_way",
        "integration/test_cli_commands.py::test_show_tells_plan_usage_and_notes",
        "e2e/test_demo.py::test_the_story_is_told_without_a_network_and_leaves_nothing",
    ),
    # adr-042
    "S1": (
        f"{_SUPERVISED}::test_the_worker_says_how_the_task_ended",
        f"{_SUPERVISED}::test_nobody_else_may_say_how_it_ended",
        f"{_SUPERVISED}::test_a_blocked_task_says_what_it_needs_and_goes_on_with_the_answer",
        f"{_SUPERVISED}::test_our_own_agent_says_itself_how_the_task_ended",
        f"{_WORKERS}::test_a_worker_takes_a_task_over_mcp_and_says_how_it_ended",
        f"{_WORKERS}::test_a_send_that_waits_is_answered_when_the_worker_is_done_or_needs_something",
        f"{_WORKERS}::test_a_late_message_to_an_expired_task_says_so_and_how_to_go_on",
        f"{_DAYS}::test_a_task_expires_to_the_minute_after_its_warnings",
    ),
    "S2": (
        f"{_DAYS}::test_the_ladder_is_climbed_to_the_minute",
        f"{_DAYS}::test_one_reminder_names_all_ten_due_tasks",
        f"{_DAYS}::test_no_hour_has_more_than_six_reminders",
        f"{_DAYS}::test_nobody_is_reminded_while_a_person_is_awaited_or_something_runs_or_the_worker_was_stopped",
        f"{_DAYS}::test_with_no_task_open_nothing_wakes",
        f"{_SUPERVISED}::test_a_quiet_worker_is_reminded_and_then_the_task_is_stalled",
        f"{_SUPERVISED}::test_our_own_agent_is_reminded_by_a_turn",
        "unit/engine/test_desk.py",
    ),
    "S3": (
        f"{_SUPERVISED}::test_tasks_wait_in_a_queue_and_start_in_order",
        "e2e/test_workers.py::test_fifty_tasks_are_done_once_and_in_order_although_their_workers_are_killed",
    ),
    "S4": (f"{_WORKERS}::test_an_acknowledgement_is_kept_and_closes_nothing",),
    "S5": (
        "integration/supervision/test_kills.py::test_no_rung_is_lost_or_doubled_by_kills_between_them",
        "integration/gateway/test_protocol.py::test_the_card_tells_bindings_extensions_and_scheme_and_is_cached",
        "contract/test_extension_schemas.py",
    ),
}
