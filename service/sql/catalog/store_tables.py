"""The options of a table's object store, checked against its path and one another."""

from joins.plan.connections import (
    AZURE_ACCOUNT,
    AZURE_ENDPOINT,
    AZURE_KEY,
    AZURE_SAS,
    OF_STORES,
    S3_ENDPOINT,
    S3_KEY,
    S3_SECRET,
    S3_TOKEN,
    StoreOptions,
    StoreTable,
    is_in_store,
)
from service.sql.catalog.option_values import OptionValues


def store_options(values: OptionValues, path: str, prefix: str = "") -> StoreOptions:
    """How the store of a table is reached; none of a table in a directory.

    Args:
        values: of the statement.
        path: of the table.
        prefix: of the options.

    Raises:
        SqlError: an option has no meaning for the path, or lacks another one.
    """
    chosen = {name: prefix + name for name in OF_STORES if prefix + name in values.nodes}
    _check_scheme(values, path, chosen)
    if not is_in_store(path):
        return ()
    if StoreTable.of(path).is_azure:
        _check_azure(values, path, chosen, prefix)
    else:
        _check_s3(values, chosen, prefix)
    return tuple((name, values.nodes[key].value) for name, key in sorted(chosen.items()))


def _check_scheme(values: OptionValues, path: str, chosen: dict[str, str]) -> None:
    kind = ""
    if is_in_store(path):
        kind = "azure." if StoreTable.of(path).is_azure else "s3."
    foreign = [key for name, key in chosen.items() if not (kind and name.startswith(kind))]
    if foreign:
        raise values.error(
            foreign[0],
            f'option "{foreign[0]}" has no meaning for path "{path}"',
            hint="Remove the option, or give a path such as s3://bucket/table or "
            "abfss://container@account.dfs.core.windows.net/table.",
        )


def _check_s3(values: OptionValues, chosen: dict[str, str], prefix: str) -> None:
    values.require_pair(prefix + S3_KEY, prefix + S3_SECRET)
    for name in (S3_TOKEN, S3_ENDPOINT):
        if name in chosen and S3_KEY not in chosen:
            raise values.error(
                chosen[name],
                f'option "{chosen[name]}" needs a key of the table\'s own',
                hint=f"Add '{prefix + S3_KEY}' and '{prefix + S3_SECRET}'; the environment's "
                "credentials go to no server that a script names.",
            )


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
            f'option "{chosen[AZURE_ENDPOINT]}" needs a key of the table\'s own',
            hint=f"Add '{prefix + AZURE_KEY}' or '{prefix + AZURE_SAS}'; the environment's "
            "credentials go to no server that a script names.",
        )
