"""Paths of tables, and the options of tables in object stores, named as in Flink's file systems."""

from dataclasses import replace
from typing import Any

from joins.plan.connections import (
    AZURE_ACCOUNT,
    AZURE_ENDPOINT,
    AZURE_KEY,
    AZURE_SAS,
    OF_STORES,
    S3_ENDPOINT,
    S3_KEY,
    S3_PATH_STYLE,
    S3_REGION,
    S3_SECRET,
    S3_TOKEN,
    STORE_PATH,
    StoreOptions,
    StoreTable,
    is_in_store,
)
from service.sql.catalog.option import ADDRESS, Option, OptionType, with_prefix
from service.sql.catalog.option_values import OptionValues

PATH = (
    r"(?:file://(?=/))?/?"
    r"(?!\.{1,2}(?:/|$))[A-Za-z0-9_=+,@.-]+(?:/(?!\.{1,2}(?:/|$))[A-Za-z0-9_=+,@.-]+)*/?"
)
PATH_FORM = 'a path without "..": relative to the warehouse, absolute, or file:///…'
TABLE_PATH = f"(?:{PATH}|{STORE_PATH})"
TABLE_PATH_FORM = (
    f"{PATH_FORM}; or in an object store: s3://bucket/table, "
    "abfss://container@account.dfs.core.windows.net/table, az://container/table"
)
_CREDENTIAL: dict[str, Any] = {
    "credential": True,
    "reference": True,
    "pattern": r"[\x21-\x7e]{1,4096}",
    "form": "${secret:name}, or 1 to 4,096 printable characters",
}
STORE_OPTIONS = (
    Option(
        S3_KEY,
        "Of a table in s3://…: id of the access key; without it, and without its secret, the "
        "environment's credentials are used where the operator allows them.",
        **_CREDENTIAL,
    ),
    Option(S3_SECRET, "Of a table in s3://…: secret of the access key.", **_CREDENTIAL),
    Option(S3_TOKEN, "Of a table in s3://…: token of a key that expires.", **_CREDENTIAL),
    Option(
        S3_ENDPOINT,
        "Of a table in s3://…: server that speaks S3; Amazon's when missing. It takes a key of its "
        "own.",
        **ADDRESS,
    ),
    Option(
        S3_REGION,
        "Of a table in s3://…: region of the bucket; that of the environment, else us-east-1, when "
        "missing.",
        pattern=r"[a-z0-9-]{1,64}",
        form="a region such as eu-central-1",
    ),
    Option(
        S3_PATH_STYLE,
        "Of a table in s3://…: whether the bucket is in the path of an address, not in its host.",
        OptionType.FLAG,
        default="true",
    ),
    Option(
        AZURE_ACCOUNT,
        "Of a table in az://…: storage account; an abfss://… address has it.",
        pattern=r"[a-z0-9]{3,24}",
        form="3 to 24 lowercase letters and digits",
    ),
    Option(AZURE_KEY, "Of a table in Azure: key of the storage account.", **_CREDENTIAL),
    Option(AZURE_SAS, "Of a table in Azure: shared access signature.", **_CREDENTIAL),
    Option(
        AZURE_ENDPOINT,
        "Of a table in Azure: server of the account; Azure's when missing. It takes a key or a "
        "signature of its own.",
        **ADDRESS,
    ),
)


def of_late_records(prefix: str, option: Option) -> tuple[Option, ...]:
    shortened = (
        replace(each, meaning=each.meaning.replace("a table", "late records"), roles=option.roles)
        for each in STORE_OPTIONS
    )
    return with_prefix(prefix, *shortened)


def store_options(values: OptionValues, path: str, prefix: str = "") -> StoreOptions:
    """How to reach the store of a table; empty for a table in a directory."""
    chosen = {name: prefix + name for name in OF_STORES if prefix + name in values.nodes}
    kind = ""
    if is_in_store(path):
        kind = "azure." if StoreTable.of(path).is_azure else "s3."
    foreign = [key for name, key in chosen.items() if not (kind and name.startswith(kind))]
    if foreign:
        raise values.error(
            foreign[0],
            f'option "{foreign[0]}" has no effect for path "{path}"',
            hint="Remove the option, or give a path such as s3://bucket/table or "
            "abfss://container@account.dfs.core.windows.net/table.",
            is_needless=True,
        )
    if not is_in_store(path):
        return ()
    if StoreTable.of(path).is_azure:
        _check_azure(values, path, chosen, prefix)
    else:
        values.require_pair(prefix + S3_KEY, prefix + S3_SECRET)
        for name in (S3_TOKEN, S3_ENDPOINT):
            if name in chosen and S3_KEY not in chosen:
                raise values.error(
                    chosen[name],
                    f'option "{chosen[name]}" needs an access key in the table\'s options',
                    hint=f"Add '{prefix + S3_KEY}' and '{prefix + S3_SECRET}'; the environment's "
                    "credentials are not sent to a server that a script names.",
                )
    return tuple((name, values.nodes[key].value) for name, key in sorted(chosen.items()))


def _check_azure(values: OptionValues, path: str, chosen: dict[str, str], prefix: str) -> None:
    has_account = bool(StoreTable.of(path).account)
    if has_account == (AZURE_ACCOUNT in chosen):
        raise values.error(
            prefix + AZURE_ACCOUNT if AZURE_ACCOUNT in chosen else f"{prefix}path",
            f'path "{path}" has the storage account already'
            if has_account
            else f'path "{path}" does not name a storage account',
            hint=f"Remove '{prefix + AZURE_ACCOUNT}'."
            if has_account
            else f"Add '{prefix + AZURE_ACCOUNT}'.",
            is_needless=has_account,
        )
    if {AZURE_KEY, AZURE_SAS} <= chosen.keys():
        raise values.error(
            chosen[AZURE_SAS],
            f'both "{chosen[AZURE_KEY]}" and "{chosen[AZURE_SAS]}" are given',
            hint="Remove one of the two.",
        )
    if AZURE_ENDPOINT in chosen and not {AZURE_KEY, AZURE_SAS} & chosen.keys():
        raise values.error(
            chosen[AZURE_ENDPOINT],
            f'option "{chosen[AZURE_ENDPOINT]}" needs an access key in the table\'s options',
            hint=f"Add '{prefix + AZURE_KEY}' or '{prefix + AZURE_SAS}'; the environment's "
            "credentials are not sent to a server that a script names.",
        )
