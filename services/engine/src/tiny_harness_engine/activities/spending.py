"""What a task and all that belongs to it has used, and whether another model call is allowed (DESIGN: budgets)."""

from typing import Final

from tiny_harness.contracts import TaskSnapshot, Usage
from tiny_harness.settings import Settings
from tiny_harness.store import Store
from tiny_harness_engine.core.usage import over_budget, tree_usage

MAX_TREE: Final = 2_000
"""Tasks of a tree that are added up."""


class Spending:
    """Watches budgets, bound to a store."""

    def __init__(self, settings: Settings, store: Store) -> None:
        self._limits = settings.tasks.budget
        self._store = store

    async def objection(self, task: TaskSnapshot) -> str | None:
        """Say why somebody must allow another model call; `None`: go on. Costs nothing where there is no budget."""
        if self._limits.tokens is None and self._limits.cost is None:
            return None
        tree = await self._tree(task)
        granted = sum(each.budgets for each in tree)
        return over_budget(tree_usage(Usage(), (each.usage for each in tree)), self._limits, granted)

    async def _tree(self, task: TaskSnapshot) -> list[TaskSnapshot]:
        """Load the whole tree that a task is in, on this harness."""
        root = task
        while root.parent is not None:
            above = (await self._store.snapshots([root.parent])).get(root.parent)
            if above is None:
                break
            root = above
        found = {root.task_id: root}
        level = [root]
        while level and len(found) < MAX_TREE:
            below = [child.task_id for each in level for child in each.children if child.task_id not in found]
            loaded = await self._store.snapshots(below) if below else {}
            level = list(loaded.values())
            found.update(loaded)
        return list(found.values())
