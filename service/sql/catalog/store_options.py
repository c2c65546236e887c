"""WITH options of tables in object stores, named as Flink's file systems name them."""

from dataclasses import replace
from typing import Any

from joins.plan.connections import (
    AZURE_ACCOUNT,
    AZURE_ENDPOINT,
    AZURE_KEY,
    AZURE_SAS,
    S3_ENDPOINT,
    S3_KEY,
    S3_PATH_STYLE,
    S3_REGION,
    S3_SECRET,
    S3_TOKEN,
)
from service.sql.catalog.option import ADDRESS, Option, OptionType, with_prefix

_CREDENTIAL: dict[str, Any] = {
    "credential": True,
    "reference": True,
    "pattern": r"[\x21-\x7e]{1,4096}",
    "form": "${secret:name}, or 1 to 4,096 printable characters",
}
OF_STORES = (
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
        for each in OF_STORES
    )
    return with_prefix(prefix, *shortened)
