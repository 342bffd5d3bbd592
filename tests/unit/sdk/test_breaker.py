"""The circuit breaker."""

from tiny_harness.hooks.breaker import FAILURES_TO_OPEN, TRIAL_AFTER_S, Breaker


class Clock:
    """A clock that stands until it is moved."""

    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


def opened(clock: Clock) -> Breaker:
    breaker = Breaker(clock)
    for _ in range(FAILURES_TO_OPEN):
        assert breaker.try_enter()
        breaker.failed("no answer")
    return breaker


def test_it_lets_calls_in_until_five_have_failed_in_a_row():
    breaker = opened(Clock())
    assert breaker.state == "open"
    assert not breaker.try_enter()
    assert breaker.last_reason == "no answer"
    assert breaker.wait_s == TRIAL_AFTER_S


def test_a_success_in_between_starts_the_count_anew():
    breaker = Breaker(Clock())
    for _ in range(3):
        for _ in range(FAILURES_TO_OPEN - 1):
            breaker.failed("no answer")
        breaker.succeeded()
    assert breaker.state == "closed"
    assert breaker.last_reason == ""


def test_after_a_pause_exactly_one_call_is_tried():
    clock = Clock()
    breaker = opened(clock)
    clock.now += TRIAL_AFTER_S
    assert breaker.state == "trial"
    assert [breaker.try_enter() for _ in range(3)] == [True, False, False]


def test_a_trial_that_succeeds_closes_it():
    clock = Clock()
    breaker = opened(clock)
    clock.now += TRIAL_AFTER_S
    assert breaker.try_enter()
    breaker.succeeded()
    assert [breaker.try_enter() for _ in range(3)] == [True, True, True]


def test_a_trial_that_fails_opens_it_for_as_long_again():
    clock = Clock()
    breaker = opened(clock)
    clock.now += TRIAL_AFTER_S
    assert breaker.try_enter()
    breaker.failed("still no answer")
    assert not breaker.try_enter()
    clock.now += TRIAL_AFTER_S - 0.1
    assert not breaker.try_enter()
    clock.now += 0.1
    assert breaker.try_enter()


def test_a_trial_that_is_cancelled_leaves_the_place_to_the_next():
    clock = Clock()
    breaker = opened(clock)
    clock.now += TRIAL_AFTER_S
    assert breaker.try_enter()
    breaker.abandoned()
    assert breaker.try_enter()


def test_calls_that_began_before_it_opened_do_not_close_the_way_to_a_trial():
    clock = Clock()
    breaker = opened(clock)
    breaker.failed("late")
    clock.now += TRIAL_AFTER_S
    assert breaker.try_enter()
