"""The API as its description promises, under generated requests, over a real store with jobs."""

import json
from importlib import import_module

import pytest
from hypothesis import HealthCheck, given, settings

from service.api.app import create_app
from service.api.openapi import PATH
from tests.support.laws import examples
from tests.support.stored_jobs import STEPS, store_job, stored_services

BASE = "http://127.0.0.1"
PROBLEM = "application/problem+json"
EXAMPLES = max(5, examples(100))
TIMEOUT_S = 60  # schemathesis' own are the 10 s that an answer may wait for a runner
# A value that is too long may be longer than the head of a request may be.
REFUSED = ["400", "401", "403", "404", "405", "406", "409", "415", "422", "428", "429", "431"]
CONFIG = {"checks": {"negative_data_rejection": {"expected-statuses": REFUSED}}}


@pytest.fixture(scope="module")
def schemathesis():
    """Loaded when the first test runs: it takes a second, and most runs select other tests."""
    return import_module("schemathesis")


@pytest.fixture(scope="module")
def api(schemathesis, secret, tmp_path_factory):
    config = schemathesis.Config.from_dict(CONFIG)
    with stored_services(tmp_path_factory.mktemp("data"), supervised=True) as services:
        ids = [store_job(services, name) for name in STEPS]
        app = create_app(services)
        found = schemathesis.openapi.from_asgi(
            "/openapi.json", app, config=config, headers={"Host": "127.0.0.1"}
        )
        _with_real_jobs(found, ids)
        yield found


def _with_real_jobs(found, ids):
    """Half of the requests are about jobs that are there; only the last one may be removed."""
    turn = iter(range(1 << 62))

    @found.hook
    def map_path_parameters(context, path_parameters):
        number = next(turn)
        if path_parameters and "job_id" in path_parameters and number % 2:
            removing = context.operation.method.upper() == "DELETE"
            job_id = ids[-1] if removing else ids[number // 2 % (len(ids) - 1)]
            return {**path_parameters, "job_id": job_id}
        return path_parameters


OPERATIONS = [
    (path, method)
    for path, methods in json.loads(PATH.read_text())["paths"].items()
    for method in methods
]


@pytest.mark.usefixtures("processes")
@pytest.mark.parametrize(
    ("path", "method"), OPERATIONS, ids=[f"{method} {path}" for path, method in OPERATIONS]
)
def test_every_answer_is_as_described(api, schemathesis, path, method):
    operation, modes = api[path][method], schemathesis.GenerationMode
    cases = operation.as_strategy(generation_mode=modes.POSITIVE)
    cases |= operation.as_strategy(generation_mode=modes.NEGATIVE)
    # A script that reads well is not what a generator makes: 422 is its right answer.
    checks = import_module("schemathesis.specs.openapi.checks")
    excluded = [checks.positive_data_acceptance]

    @settings(
        max_examples=EXAMPLES,
        derandomize=True,
        database=None,
        suppress_health_check=list(HealthCheck),
    )
    @given(case=cases)
    def check(case):
        answer = case.call(base_url=BASE, timeout=TIMEOUT_S)
        case.validate_response(answer, excluded_checks=excluded)
        check_problem(answer)

    check()


def check_problem(answer):
    if answer.status_code < 400:
        return
    assert answer.status_code < 500 or answer.status_code == 503
    assert answer.headers["content-type"] == [PROBLEM]
    problem = answer.json()
    assert problem["type"].startswith("urn:sluice:problem:")
    assert problem["hint"].endswith((".", "?"))
    if answer.status_code == 503:
        assert answer.headers["retry-after"]
