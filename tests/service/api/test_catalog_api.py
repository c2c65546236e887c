"""`/v1/tables` and `sluice tables` over a real server, a real store and runner processes."""

import json

import httpx
import pytest
from typer.testing import CliRunner

from service.cli.conversation import Conversation
from service.cli.main import app
from service.client import ConflictError, NotFoundError, Sluice
from tests.support.control_plane import control_plane, script
from tests.support.wait import wait_until

USERS = """CREATE SHARED TABLE {name} (
    user_id BIGINT, name STRING, PRIMARY KEY (user_id) NOT ENFORCED)
WITH ('connector'='mysql-cdc', 'hostname'='127.0.0.1', 'username'='cdc',
      'password'='${{secret:shop}}', 'database-name'='shop', 'table-name'='users')"""
REST = "CREATE TABLE clicks " + script().partition("CREATE TABLE clicks ")[2]
DECLARED, _, INSERT = REST.rpartition("INSERT")
INSERT = f"INSERT{INSERT}"
PLANE = {"kafka_bootstrap_servers": "127.0.0.1:9"}  # never asked: runners are programs


@pytest.fixture
def client(plane):
    with Sluice(plane.url) as opened:
        yield opened
        for job in opened.jobs():
            if job.shared_table is None:
                opened.job(job.id).delete()
        wait_until(lambda: all(job.shared_table for job in opened.jobs()), what="jobs are gone")
        for kinds in (("view",), ("table", "shared")):
            for table in opened.catalog.tables():
                if table.kind in kinds:
                    opened.catalog.drop(table.name)
        wait_until(lambda: not list(opened.jobs()), what="jobs of tables are gone")


def _state(client, name, state):
    wait_until(lambda: client.catalog.table(name).state == state, what=f"{name} is {state}")


def test_a_shared_table_is_a_job_that_jobs_read_by_its_name(client):
    assert client.catalog.create(USERS.format(name="users")).created == ["users"]
    client.catalog.create(DECLARED)
    assert [table.name for table in client.catalog.tables()] == ["clicks", "enriched", "users"]
    _state(client, "users", "JOINING")
    job = client.submit(INSERT, "reader")
    shown = client.catalog.table("users")
    assert [column.name for column in shown.columns] == ["user_id", "name"]
    assert [one.id for one in shown.attached] == [job.id]
    assert client.job("users").status().shared_table == "users"
    with pytest.raises(ConflictError, match=f"{job.id}"):
        client.catalog.drop("users")
    with pytest.raises(ConflictError, match='keeps shared table "users"'):
        client.job("users").delete()
    job.delete()
    client.catalog.drop("users")
    wait_until(lambda: not list(client.jobs()), what="its job is gone")
    with pytest.raises(NotFoundError):
        client.catalog.table("users")


def test_the_job_of_a_shared_table_is_paused_and_resumed_like_others(client):
    client.catalog.create(USERS.format(name="users"))
    _state(client, "users", "JOINING")
    job = client.job("users")
    job.pause()
    _state(client, "users", "PAUSED")
    job.resume()
    _state(client, "users", "JOINING")


REFUSED = {
    "a_name_that_is_taken": (USERS.format(name="users"), 409, "already"),
    "other_columns": (
        USERS.format(name="IF NOT EXISTS users").replace("name STRING", "age INT"),
        409,
        "other columns",
    ),
    "another_kind": (
        "CREATE TABLE IF NOT EXISTS users (id BIGINT) WITH ('connector'='print')",
        409,
        "as a shared, not as a table",
    ),
    "a_database_that_does_not_answer": (
        USERS.format(name="people").replace("127.0.0.1", "down"),
        422,
        "does not answer",
    ),
    "no_declaration": ("SHOW TABLES", 422, "no declaration"),
    "no_sql": ("CREATE SHARED people", 422, "SHARED"),
}


@pytest.mark.parametrize(("sql", "status", "text"), REFUSED.values(), ids=REFUSED)
def test_what_cannot_be_created_is_a_problem_and_leaves_nothing(plane, client, sql, status, text):
    client.catalog.create(USERS.format(name="users"))
    answer = httpx.post(f"{plane.url}/v1/tables", json={"sql": sql}, trust_env=False)
    assert answer.status_code == status, answer.text
    assert text in f"{answer.json()['detail']} {answer.json()['hint']}"
    assert [table.name for table in client.catalog.tables()] == ["users"]
    directories = [path.name for path in plane.services.settings.jobs_dir.iterdir()]
    assert sorted(directories) == sorted(job.id for job in client.jobs())


def test_a_name_that_was_dropped_can_be_created_anew(client):
    client.catalog.create(USERS.format(name="users"))
    client.catalog.drop("users")
    other = USERS.format(name="users").replace("name STRING", "age INT")
    assert client.catalog.create(other).created == ["users"]
    assert [column.name for column in client.catalog.table("users").columns] == ["user_id", "age"]


def test_if_not_exists_lets_the_same_table_be(client):
    client.catalog.create(USERS.format(name="users"))
    creation = client.catalog.create(USERS.format(name="IF NOT EXISTS users"))
    assert (creation.created, creation.kept) == ([], ["users"])


def test_without_a_cluster_of_our_own_no_table_is_shared(processes, secret, tmp_path):
    with control_plane(tmp_path) as plane, Sluice(plane.url) as client:
        with pytest.raises(Exception, match="no kafka for its changelog"):
            client.catalog.create(USERS.format(name="users"))
        assert client.catalog.tables() == []


def test_the_command_line_keeps_shows_and_drops_tables(plane, client, tmp_path, monkeypatch):
    monkeypatch.setenv("SLUICE_URL", plane.url)
    file = tmp_path / "users.sql"
    file.write_text(USERS.format(name="users"))
    run = CliRunner().invoke
    server = ["--server", plane.url]
    assert run(app, ["tables", "create", "-f", str(file), *server]).stdout == "users\n"
    _state(client, "users", "JOINING")
    (listed,) = json.loads(run(app, ["tables", "ls", "--output", "json", *server]).stdout)
    assert (listed["name"], listed["kind"], listed["phase"]) == ("users", "shared", "JOIN")
    assert "CREATE SHARED TABLE users" in run(app, ["tables", "get", "users", *server]).stdout
    assert run(app, ["tables", "rm", "users", *server]).exit_code == 0
    assert client.catalog.tables() == []


def test_a_script_that_only_declares_lasts_and_a_conversation_forgets(client):
    told = []
    Conversation(client, told.append, 60.0).carry_out(f"{USERS.format(name='users')};{DECLARED}")
    assert next(row for result in told for row in result["rows"]) == [
        "users created in the catalog"
    ]
    typed = Conversation(client, told.append, 60.0, in_parts=True)
    typed.carry_out("CREATE TABLE mine (id BIGINT) WITH ('connector'='print');")
    typed.carry_out("SHOW TABLES; DESCRIBE users;")
    assert [row[0] for row in told[-2]["rows"]] == ["clicks", "enriched", "mine", "users"]
    assert told[-1]["rows"][0][0] == "user_id"
    typed.carry_out("DROP TABLE mine; DROP TABLE IF EXISTS nothing; DROP TABLE clicks; SHOW TABLES")
    assert [row[0] for row in told[-1]["rows"]] == ["enriched", "users"]
    assert [table.name for table in client.catalog.tables()] == ["enriched", "users"]
