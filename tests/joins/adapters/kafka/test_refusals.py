"""What a broker refuses is said in our words; the library's text is the error's detail."""

import ast
from pathlib import Path

import pytest
from kafka import errors as kafka_errors

from joins.adapters.kafka.options import TlsError, TokenRefusedError, refusal

ROOT = Path(__file__).parents[4]
OURS = {"RecordFormatError", "TokenRefusedError"}  # their texts are ours


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (kafka_errors.TopicAuthorizationFailedError("t"), "TopicAuthorizationFailedError"),
        (
            TlsError("[SSL: CERTIFICATE_VERIFY_FAILED] self-signed (_ssl.c:992)"),
            "one side does not accept the other's certificate: CERTIFICATE_VERIFY_FAILED",
        ),
        (TokenRefusedError('"http://a" is no token endpoint'), '"http://a" is no token endpoint'),
    ],
)
def test_a_refusal_is_our_text_or_the_errors_name(error, said):
    assert refusal(error) == said


def messages_with_a_librarys_text(path):
    """Lines of `raise X(f"… {exc} …")` in a handler that binds `exc` to a library's error."""
    for node in ast.walk(ast.parse(path.read_text())):
        if not isinstance(node, ast.ExceptHandler) or node.name is None:
            continue
        caught = {n.attr for n in ast.walk(node.type) if isinstance(n, ast.Attribute)}
        caught |= {n.id for n in ast.walk(node.type) if isinstance(n, ast.Name)}
        if caught & OURS:
            continue
        for call in ast.walk(node):
            if (
                isinstance(call, ast.Call)
                and call.args
                and "hint" in {k.arg for k in call.keywords}
            ):
                parts = ast.walk(call.args[0])
                for part in parts:
                    is_text = isinstance(part, ast.FormattedValue)
                    if is_text and isinstance(part.value, ast.Name) and part.value.id == node.name:
                        yield f"{path.name}:{part.lineno}"


def test_no_message_of_the_kafka_clients_has_a_librarys_text():
    files = [*(ROOT / "joins/adapters/kafka").glob("*.py")]
    assert len(files) > 10
    assert [line for file in files for line in messages_with_a_librarys_text(file)] == []
