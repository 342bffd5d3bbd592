"""Agent Skills as the agent meets them: names first, instructions when it asks, files when those say so."""

from tiny_harness_engine.skills.library import SkillLibrary

__all__ = ["SkillLibrary"]
