"""The tree of tasks that a task belongs to, on this harness."""

from typing import Final

from tiny_harness.contracts import TaskSnapshot
from tiny_harness.store import Store

MAX_TREE: Final = 2_000
"""Tasks of a tree that are loaded at most: beyond, a tree is larger than any limit."""


async def tree_of(store: Store, task: TaskSnapshot) -> list[TaskSnapshot]:
    """Load the whole tree that a task is in, ended tasks too, its root first."""
    root = task
    while root.parent is not None:
        above = (await store.snapshots([root.parent])).get(root.parent)
        if above is None:
            break
        root = above
    found = {root.task_id: root}
    level = [root]
    while level and len(found) < MAX_TREE:
        below = [child.task_id for each in level for child in each.children if child.task_id not in found]
        loaded = await store.snapshots(below) if below else {}
        level = list(loaded.values())
        found.update(loaded)
    return list(found.values())
