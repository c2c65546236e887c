"""Prepares an example for what `sluice up` runs: fills tables, puts addresses into the script.

    python ../prepare.py .                  # in the directory of an example
    python ../prepare.py --sql change.sql   # statements for MariaDB
    python ../prepare.py --postgres change.sql

The first one writes the script into the working directory, under the example's name. The control
plane says in which directory `sluice up` keeps `mariadb.cnf`, and `postgres.json` if it was started
`--with postgres`.
"""

import argparse
import configparser
import json
from collections.abc import Mapping
from pathlib import Path

import pg8000.dbapi
import pymysql

from service.client import Sluice


def filled(script: str, places: Mapping[str, str]) -> str:
    """The script with `<name>` replaced by where it is."""
    for name, place in places.items():
        script = script.replace(f"<{name}>", place)
    return script


def statements(sql: str) -> list[str]:
    """The statements of a file: each one ends with a semicolon at the end of a line."""
    return [each.strip() for each in f"{sql}\n".split(";\n") if each.strip()]


def main() -> None:
    """Do what the command line says."""
    parser = argparse.ArgumentParser(description="Prepare an example for what sluice up runs.")
    parser.add_argument("example", type=Path, nargs="?", help="its directory")
    parser.add_argument("--sql", type=Path, help="a file of statements for MariaDB")
    parser.add_argument("--postgres", type=Path, help="a file of statements for PostgreSQL")
    arguments = parser.parse_args()
    with Sluice() as sluice:
        found = sluice.examples().directory
        kafka = sluice.version().kafka_bootstrap_servers or "localhost:9092"
    if found is None:
        said = "error: this control plane is not one of sluice up\n"
        parser.exit(1, f"{said}hint: Start sluice up, or set SLUICE_SERVER to its address.\n")
    up = Path(found)
    client_file = up / "mariadb.cnf"
    if arguments.postgres:
        run_postgres(parser, up / "postgres.json", arguments.postgres)
    example = arguments.example
    for file in (arguments.sql, example and example / "data.sql"):
        if file and file.exists():
            with pymysql.connect(read_default_file=str(client_file), autocommit=True) as database:
                for each in statements(file.read_text(encoding="utf-8")):
                    database.cursor().execute(each)
    if example is not None:
        name = f"{example.resolve().name}.sql"
        script = (example / "script.sql").read_text(encoding="utf-8")
        Path(name).write_text(filled(script, _places(client_file, kafka)), encoding="utf-8")
        print(f"sluice submit {name} --wait join")  # noqa: T201 (a program for people)


def run_postgres(parser: argparse.ArgumentParser, client_file: Path, sql: Path) -> None:
    """Run the statements of a file in one transaction."""
    if not client_file.exists():
        hint = "Start sluice up with --with postgres."
        parser.exit(1, f"error: {client_file} is not there\nhint: {hint}\n")
    database = pg8000.dbapi.connect(**json.loads(client_file.read_text(encoding="utf-8")))
    for each in statements(sql.read_text(encoding="utf-8")):
        database.cursor().execute(each)
    database.commit()
    database.close()


def _places(client_file: Path, kafka: str) -> dict[str, str]:
    options = configparser.RawConfigParser()
    options.read(client_file)
    host, port = (options["client"][name] for name in ("host", "port"))
    return {"mariadb-host": host, "mariadb-port": port, "kafka": kafka}


if __name__ == "__main__":
    main()
