"""What a rental platform does differently."""

from __future__ import annotations

from doctor.model import Container, Environment, Platform, Workload
from tests.checks.judged import said, the, variables

STARTED = Container(inside=True, first_process_variables=("HF_TOKEN", "RUNPOD_POD_ID", "PATH", "HOME"))


def test_variables_of_the_pod_that_ssh_does_not_hand_on() -> None:
    found = the("pod-variables-missing-over-ssh", container=STARTED, environment=variables(PATH="/bin"))
    assert found.level == "note"
    assert "HF_TOKEN, RUNPOD_POD_ID" in str(found.title)
    whole = Environment(variables={"RUNPOD_POD_ID": "x"}, names=("HF_TOKEN",))
    assert said(container=STARTED, environment=whole) == {}
    assert said(container=STARTED, environment=Environment(complete=False)) == {}


AUTODL = Platform(name="autodl", network_turbo=True)


def test_the_academic_proxy_of_autodl() -> None:
    assert said(platform=AUTODL, environment=variables(http_proxy="http://x", no_proxy="localhost")) == {
        "platform-proxy-on": "note"
    }
    assert said(platform=AUTODL, environment=variables()) == {"platform-proxy-there": "note"}
    assert said(platform=AUTODL, environment=variables(HF_ENDPOINT="https://hf-mirror.com")) == {}
    assert said(platform=Platform(name="runpod"), environment=variables()) == {}


def test_a_proxy_that_catches_localhost() -> None:
    assert said(environment=variables(http_proxy="http://proxy:3128")) == {"proxy-catches-localhost": "note"}
    assert said(environment=variables(http_proxy="http://proxy:3128", no_proxy="127.0.0.1,localhost")) == {}


def test_the_tensorboard_button_reads_one_folder() -> None:
    elsewhere = Workload(training_args={"logging_dir": "/root/autodl-tmp/logs"})
    assert said(platform=AUTODL, workload=elsewhere) == {"tensorboard-folder-elsewhere": "note"}
    assert said(platform=AUTODL, workload=Workload(training_args={"logging_dir": "/root/tf-logs/a"})) == {}
    assert said(platform=Platform(name="vast"), workload=elsewhere) == {}
