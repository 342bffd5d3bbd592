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


OPEN_ISSUES: Final = frozenset({"3", "4", "5", "6", "7"})

_CLI: Final = "e2e/test_cli.py"
_PATHS: Final = "unit/sdk/test_paths.py"
_CONFIG: Final = "unit/sdk/test_config_file.py"
_LIFE: Final = "unit/engine/test_lifecycle.py"
_TASK: Final = "integration/engine/test_task_workflow.py"
_OPS: Final = "integration/gateway/test_operations.py"
_ACCESS: Final = "security/test_gateway_access.py"
_STREAMS: Final = "integration/gateway/test_streams.py"
_TUI: Final = "unit/sdk/test_tui_app.py"

REQUIREMENTS: Final[dict[str, tuple[str, ...] | pending]] = {
    # 1: the command works straight after installation
    "R1.1": (f"{_CLI}::test_help_lists_every_command_and_names_the_configuration_in_effect",),
    "R1.2": ("integration/test_tui.py::test_a_person_holds_a_conversation_and_leaves",),
    "R1.3": (f"{_CLI}::test_plain_mode_holds_a_conversation_over_pipes",),
    "R1.4": pending("5"),
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
    "R3.2": pending("4"),
    "R3.3": (f"{_LIFE}::test_a_parked_task_resumes_in_working_and_drops_its_sub_state",),
    "R3.4": pending("4"),
    "R3.5": pending("4"),
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
    "R5.1": (f"{_OPS}::test_complete_ends_a_task_and_the_next_message_is_refused_with_the_way_on",),
    "R5.2": (
        f"{_LIFE}::test_complete_ends_any_open_task",
        f"{_TASK}::test_complete_cuts_a_running_turn_for_real",
    ),
    "R5.3": (
        f"{_LIFE}::test_an_ended_task_takes_nothing_and_says_its_state",
        f"{_OPS}::test_cancel_ends_a_parked_and_a_working_task_and_only_once",
    ),
    "R5.4": pending("3"),
    "R5.5": (f"{_TUI}::test_complete_ends_the_task", f"{_TUI}::test_cancel_asks_once_in_place"),
    "R5.6": (f"{_TUI}::test_another_surface_completes_the_task_and_a_message_starts_a_new_one_in_its_context",),
    "R5.7": (
        f"{_TUI}::test_a_conversation_goes_on_in_the_same_task",
        "unit/sdk/test_states.py::test_a_sub_state_shows_only_while_input_is_required",
    ),
    # 6 to 10: commands
    **{f"R6.{n}": pending("3") for n in range(1, 9)},
    **{f"R6a.{n}": pending("3") for n in range(1, 10)},
    **{f"R7.{n}": pending("3") for n in range(1, 6)},
    **{f"R8.{n}": pending("3") for n in range(1, 6)},
    **{f"R9.{n}": pending("3") for n in range(1, 5)},
    "R10.1": pending("3"),
    "R10.2": pending("3"),
    # 11: the SDK keeps parity
    "R11.1": ("unit/sdk/test_exported_members.py::test_the_public_names_are_these",),
    "R11.2": ("integration/test_local_host.py::test_loading_and_hosting_touch_no_home",),
    "R11.3": pending("3"),
    "R11.4": pending("3"),
    # Abuse cases
    "A1": pending("3"),
    "A2": pending("3"),
    "A3": (f"{_ACCESS}::test_a_foreign_task_looks_like_a_missing_one",),
    "A4": (f"{_ACCESS}::test_a_watcher_reads_and_does_nothing_else",),
    "A5": pending("3"),
    "A6": ("security/test_gateway_perimeter.py::test_who_calls_too_often_is_told_when_to_come_back_and_others_go_on",),
    "A7": (
        f"{_PATHS}::test_a_symbolic_link_is_refused_and_nothing_is_written_through_it",
        f"{_PATHS}::test_what_belongs_to_another_user_is_refused",
        f"{_CLI}::test_a_linked_home_is_refused",
    ),
    "A8": (f"{_PATHS}::test_a_home_is_made_for_its_owner_alone_whatever_the_umask",),
    "A9": pending("3"),
    "A10": pending("3"),
    # Fail closed
    "F1": (
        f"{_ACCESS}::test_nobody_speaks_as_the_agent_or_under_a_malformed_name",
        "security/test_gateway_perimeter.py::test_mode_none_takes_names_and_wants_one",
    ),
    "F2": pending("3"),
    "F3": (f"{_CLI}::test_a_linked_home_is_refused", f"{_PATHS}::test_a_home_that_cannot_be_made_is_named"),
    # decision-007
    "D1": (f"{_LIFE}::test_a_reply_parks_a_conversation_and_never_completes_it",),
    "D2": ("unit/engine/test_wire.py::test_a_reply_that_parks_carries_its_sub_state_in_the_status_metadata",),
    "D3": (
        f"{_TASK}::test_complete_cuts_a_running_turn_for_real",
        "unit/sdk/test_intake.py::test_a_control_is_read_with_its_reason",
    ),
    "D4": pending("3"),
    # capability-tasks-and-plans: the lines of "Current behaviour"
    **{f"C{n}": pending("4") for n in range(1, 13)},
    # adr-042
    **{f"S{n}": pending("7") for n in range(1, 6)},
}
