"""`plugin.json`: the manifest of Agent Plugins 1.0, section 5. A closed schema with two forgivable faults."""

from typing import Annotated, Any, Final

from pydantic import BaseModel, ConfigDict, Field, StringConstraints, ValidationError, model_validator

from tiny_harness.errors import RegistryError
from tiny_harness.ext.names import METADATA_BASE
from tiny_harness.plugins.documents import why_invalid
from tiny_harness.plugins.plugin import check_plugin_name
from tiny_harness.plugins.report import Component

MANIFEST: Final = "plugin.json"
SCHEMA: Final = "https://agent-plugins.org/schemas/1.0.0/plugin.schema.json"
"""The one version that we read. It is compared, never fetched."""

Text = Annotated[str, StringConstraints(strict=True)]


class _Closed(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")

    @model_validator(mode="before")
    @classmethod
    def _nothing_is_null(cls, document: Any) -> Any:
        for key, value in document.items() if isinstance(document, dict) else ():
            if value is None:
                raise ValueError(f"`{key}` must not be null")
        return document


class Author(_Closed):
    """Who made it."""

    name: Text | None = None
    email: Text | None = None
    url: Text | None = None


class Manifest(_Closed):
    """What a plugin says of itself."""

    name: Text
    version: Text | None = None
    """Any text; not read as a number."""
    description: Text | None = None
    author: Author | None = None
    homepage: Text | None = None
    repository: Text | None = None
    license: Text | None = None
    keywords: tuple[Text, ...] | None = None
    spec: Text = Field(alias="$schema")


def read_manifest(document: dict[str, Any]) -> tuple[Manifest, tuple[Component, ...]]:
    """Check a manifest.

    Returns:
        It, and what was ignored in it: unknown fields, an `extensions` that is no object, and ours, which has no
        settings yet.

    Raises:
        RegistryError: The plugin is to be rejected.
    """
    if document.get("$schema") != SCHEMA:
        found = document.get("$schema", "nothing")
        raise RegistryError("manifest", MANIFEST, f"must name the `$schema` {SCHEMA}, and has {found!r:.100}")
    known = {field.alias or name for name, field in Manifest.model_fields.items()}
    try:
        manifest = Manifest.model_validate({key: value for key, value in document.items() if key in known})
    except ValidationError as error:
        raise RegistryError("manifest", MANIFEST, why_invalid(error)) from error
    check_plugin_name(manifest.name)
    unknown = [
        _ignored(key, "is no field of Agent Plugins 1.0; ignored")
        for key in document
        if key not in known and key != "extensions"
    ]
    return manifest, (*unknown, *_extensions(document.get("extensions", {})))


def _extensions(extensions: Any) -> list[Component]:
    """Look at our own namespace alone: what others hold is not for us to judge (8.1)."""
    if not isinstance(extensions, dict):
        return [_ignored("extensions", "is no object; ignored")]
    return [_ignored(f"extensions.{METADATA_BASE}", "has no settings; ignored")] if METADATA_BASE in extensions else []


def _ignored(name: str, reason: str) -> Component:
    return Component(kind="manifest", name=name[:100], state="unused", reason=reason)
