"""What a task and all that belongs to it has used, and whether another model call is allowed (DESIGN: budgets)."""

from tiny_harness.contracts import TaskSnapshot, Usage
from tiny_harness.settings import Settings
from tiny_harness.store import Store
from tiny_harness_engine.activities.family import tree_of
from tiny_harness_engine.core.usage import over_budget, tree_usage


class Spending:
    """Watches budgets, bound to a store."""

    def __init__(self, settings: Settings, store: Store) -> None:
        self._limits = settings.tasks.budget
        self._store = store

    async def objection(self, task: TaskSnapshot) -> str | None:
        """Say why somebody must allow another model call; `None`: go on. Costs nothing where there is no budget."""
        if self._limits.tokens is None and self._limits.cost is None:
            return None
        tree = await tree_of(self._store, task)
        granted = sum(each.budgets for each in tree)
        return over_budget(tree_usage(Usage(), (each.usage for each in tree)), self._limits, granted)
