"""The systemd units: the same services as elsewhere, locked in, with the time that a drain takes."""

import re
import shlex
import subprocess
from pathlib import Path
from typing import Final

import pytest

from tests.deploy.files import DEPLOY, listed, services
from tests.tools import require_tool

UNITS: Final = {path.stem.removeprefix("tiny-harness-"): path for path in (DEPLOY / "systemd").glob("*.service")}
HOME: Final = "/srv/tiny-harness"
LONG_LIVED: Final = ("gateway@", "engine@", "hooks", "temporal")

units = pytest.mark.parametrize("name", sorted(UNITS))


def unit(name: str) -> dict[str, list[str]]:
    """Read a unit; a key may stand there more than once."""
    found: dict[str, list[str]] = {}
    for line in UNITS[name].read_text().splitlines():
        key, is_key, value = line.partition("=")
        if is_key and not line.startswith("#"):
            found.setdefault(key, []).append(value)
    return found


def command(name: str) -> list[str]:
    [line] = unit(name)["ExecStart"]
    return shlex.split(line)


def test_there_is_a_unit_for_each_service_of_ours() -> None:
    assert set(UNITS) == {*LONG_LIVED, "migrate"}


@units
def test_a_unit_runs_as_nobody_and_writes_nothing_but_its_own(name: str) -> None:
    own = unit(name)
    assert own["User"] == ["harness"]
    for key in ("NoNewPrivileges", "ProtectHome", "PrivateTmp", "PrivateDevices"):
        assert own[key] == ["yes"]
    assert own["ProtectSystem"] == ["strict"]
    assert own["CapabilityBoundingSet"] == [""]
    assert set(own) & {"ReadWritePaths", "StateDirectory"} == ({"StateDirectory"} if name == "temporal" else set())


@units
def test_a_unit_starts_what_the_image_starts(name: str) -> None:
    words = command(name)
    service = name.removesuffix("@")
    if service == "temporal":
        image = listed("temporal", "CMD")
        places = {"0.0.0.0": "127.0.0.1", "/var/lib/temporal": "%S/tiny-harness-temporal"}
        for there, here in places.items():
            image = [word.replace(there, here) for word in image]
        assert words == [f"{HOME}/venv/bin/temporal", *image]
    elif service == "migrate":
        assert words[1:3] + words[-2:] == ["-m", "tiny_harness", "store", "migrate"]
    else:
        assert words[:3] == [f"{HOME}/venv/bin/python", "-m", f"tiny_harness_{service}"]
        options = {word for word in words[3:] if word.startswith("--")}
        assert options == {word for word in listed(service, "CMD") if word.startswith("--")}


@units
def test_a_unit_reads_the_secrets_that_its_container_gets(name: str) -> None:
    container = services().get({"gateway@": "gateway-1", "engine@": "engine"}.get(name, name), {})
    wanted = [f"{HOME}/{file}" for file in container.get("env_file", ())]
    assert unit(name).get("EnvironmentFile", []) == wanted


@pytest.mark.parametrize("name", LONG_LIVED)
def test_a_unit_is_started_again_but_not_with_a_wrong_configuration_and_may_drain(name: str) -> None:
    own = unit(name)
    assert own["Restart"] == ["always"]
    assert own["RestartPreventExitStatus"] == ["2"]
    assert own["KillMode"] == ["mixed"], "children are their parent's to stop"
    container = services()[{"gateway@": "gateway-1", "engine@": "engine"}.get(name, name)]
    grace = container.get("stop_grace_period", "10s")
    assert int(own["TimeoutStopSec"][0]) >= int(grace.removesuffix("s"))


def test_systemd_takes_the_units(tmp_path: Path) -> None:
    analyze = require_tool("systemd-analyze")
    for name, path in UNITS.items():
        text = re.sub(rf"{HOME}/venv/bin/\w+", "/bin/true", path.read_text())  # a program must be there
        (tmp_path / path.name.replace("@", "@8001")).write_text(text)
        done = subprocess.run(
            [analyze, "verify", tmp_path / path.name.replace("@", "@8001")],
            check=False,
            capture_output=True,
            text=True,
            timeout=60,
        )
        assert (done.returncode, done.stderr) == (0, ""), name


def test_the_guide_starts_by_hand_what_the_units_start() -> None:
    """Word for word, but for the folder and the ports that stand for one instance."""
    guide = (DEPLOY.parent / "docs" / "guide" / "deploy.md").read_text().replace("\\\n  ", "")
    ports = {"gateway@": "8001", "engine@": "8101"}
    for name in ("gateway@", "engine@", "hooks", "migrate"):
        line = " ".join(command(name)).replace(f"{HOME}/", "").replace("%i", ports.get(name, ""))
        assert line.replace("${CREDENTIALS_DIRECTORY}", "data") in guide, name
