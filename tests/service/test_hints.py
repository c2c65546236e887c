"""Hints of settings, secrets and submissions, followed: the fault first, then what its hint says.

Each entry meets one fault, does what the hint says, and does not meet it again.
"""

import pytest

from service.api.http.exposure import check_settings, check_tokens, tls_context
from service.config import Settings
from service.jobs.store.store import JobStore
from service.jobs.submit.submission import SQL_LIMIT_BYTES, check_script
from service.security.secrets import SecretResolver, SecretStore
from service.security.tokens import Credentials, NewToken, TokenScope, issue
from tests.support.certificates import encrypted_key, self_signed
from watermark.errors import SluiceError


class Fault:
    """One fault: `meet` raises it until `follow` has done what its hint says.

    Attributes:
        says: a part of the hint, by which the inventory knows it.
    """

    says = ""
    path = ""

    def __init__(self, directory, monkeypatch):
        self.directory = directory
        self.monkeypatch = monkeypatch
        monkeypatch.delenv("SLUICE_SECRET_SHOP", raising=False)  # of control planes that still run
        self.given = {}
        self.prepare()

    def prepare(self):
        """Whatever must be there before."""

    @property
    def settings(self):
        return Settings.load(data_dir=self.directory, **self.given)

    def set(self, name, value):
        self.monkeypatch.setenv(name, str(value))

    def unset(self, name):
        self.monkeypatch.delenv(name)


class SettingOutOfRange(Fault):
    says, path = "Correct SLUICE_{} or unset it", "service/config.py"

    def prepare(self):
        self.set("SLUICE_PORT", "99999")

    def meet(self):
        Settings.load()

    def follow(self):
        self.unset("SLUICE_PORT")


class SettingThatIsNoJson(SettingOutOfRange):
    says = "Correct {} or unset it for the default."

    def prepare(self):
        self.set("SLUICE_SPARK_CONF", "{a")

    def follow(self):
        self.unset("SLUICE_SPARK_CONF")


class ReachableWithoutTls(Fault):
    says, path = "Set SLUICE_TLS_CERT and SLUICE_TLS_KEY; or", "service/api/http/exposure.py"

    def prepare(self):
        self.given = {"host": "192.0.2.1"}

    def meet(self):
        check_settings(self.settings)

    def follow(self):
        cert, key = self_signed(self.directory)
        self.given |= {"tls_cert": cert, "tls_key": key}


class ReachableBehindAProxy(ReachableWithoutTls):
    def follow(self):
        self.given |= {"trusted_proxies": "192.0.2.7"}


class ReachableByATunnel(ReachableWithoutTls):
    def follow(self):
        self.given |= {"host": "127.0.0.1"}


class KeyWithoutCertificate(ReachableWithoutTls):
    says = "Set both, or none of them."

    def prepare(self):
        self.given = {"tls_key": self_signed(self.directory)[1]}

    def follow(self):
        self.given = {}


class FailpointsWithTokens(ReachableWithoutTls):
    says = "unset SLUICE_FAILPOINTS"

    def prepare(self):
        self.given = {"auth_required": True}
        self.set("SLUICE_FAILPOINTS", "C2=kill")

    def follow(self):
        self.unset("SLUICE_FAILPOINTS")


class NoTokenYet(Fault):
    says, path = "Create the first one with sluice tokens create", "service/api/http/exposure.py"

    def prepare(self):
        self.given = {"host": "192.0.2.1"}
        self.store = JobStore.open(self.settings.store_url)

    def meet(self):
        check_tokens(self.settings, self.store.tokens)

    def follow(self):
        self.store.tokens.create(NewToken("me", TokenScope.ADMIN))


class NoTokenUntilLater(NoTokenYet):
    def follow(self):
        self.given |= {"auth_required": True}


class KeyWithAPassphrase(Fault):
    says, path = "the key has no passphrase", "service/api/http/exposure.py"

    def prepare(self):
        self.cert, self.key = self_signed(self.directory)
        self.given = {"tls_cert": self.cert, "tls_key": encrypted_key(self.directory, self.key)}

    def meet(self):
        tls_context(self.settings)

    def follow(self):
        self.given["tls_key"] = self.key


class TokenFileThatIsNotThere(Fault):
    says, path = (
        "Correct {}, or unset it where no token is needed.",
        "service/security/tokens.py",
    )

    def prepare(self):
        self.set("SLUICE_TOKEN_FILE", self.directory / "token")

    def meet(self):
        Credentials.of_environment()

    def follow(self):
        self.unset("SLUICE_TOKEN_FILE")


class TokenFileWithMore(TokenFileThatIsNotThere):
    says = "Write only the token that sluice tokens create printed into it"

    def prepare(self):
        super().prepare()
        (self.directory / "token").write_text("id secret")

    def follow(self):
        _, text = issue(NewToken("me", TokenScope.ADMIN), 0)
        (self.directory / "token").write_text(f"{text}\n")


class NameOfAToken(Fault):
    says, path = "Name the user of the token in at most 100", "service/security/tokens.py"
    name = "a/b"

    def meet(self):
        issue(NewToken(self.name, TokenScope.ADMIN), 0)

    def follow(self):
        self.name = "the exporter of host-1"


class SecretThatNobodyProvides(Fault):
    says, path = "Run sluice secrets set {}, or set {} for", "service/security/secrets.py"
    reference = "${secret:shop}"

    def meet(self):
        SecretResolver.of(self.settings, None).resolve(self.reference)

    def follow(self):
        SecretStore(self.settings).put("shop", "hunter2")


class SecretOfTheEnvironment(SecretThatNobodyProvides):
    def follow(self):
        self.set("SLUICE_SECRET_SHOP", "hunter2")


class SecretOfADirectory(SecretThatNobodyProvides):
    def follow(self):
        (self.directory / "mounted").mkdir()
        (self.directory / "mounted/shop").write_text("hunter2")
        self.given = {"secrets_dir": self.directory / "mounted"}


class MalformedReference(SecretOfTheEnvironment):
    says = "Use letters, digits, dots, dashes and underscores"
    reference = "${secret:sh op}"

    def follow(self):
        super().follow()
        self.reference = "${secret:shop}"


class FileOfASecretIsNotThere(SecretThatNobodyProvides):
    says = "Correct {}_FILE or mount the file."

    def prepare(self):
        self.file = self.directory / "shop"
        self.set("SLUICE_SECRET_SHOP_FILE", self.file)

    def follow(self):
        self.file.write_text("hunter2\n")


class FileOfASecretIsTooLarge(FileOfASecretIsNotThere):
    says = "Put one password into the file."

    def prepare(self):
        super().prepare()
        self.file.write_text("x" * 100_000)


class FileOfASecretIsNoText(FileOfASecretIsNotThere):
    says = 'Make "{}" a text file readable by this user.'

    def prepare(self):
        super().prepare()
        self.file.write_bytes(b"\xff\xfe")


class ValueOfTwoLines(Fault):
    says, path = "Give one password on one line, or PEM text.", "service/security/secrets.py"
    value = "two\nlines"

    def meet(self):
        SecretStore(self.settings).put("shop", self.value)

    def follow(self):
        self.value = "one line"


class ScriptThatIsTooLong(Fault):
    says, path = "Shorten the script; statement sets may be", "service/jobs/submit/submission.py"
    script = "-" * (SQL_LIMIT_BYTES + 1)

    def meet(self):
        check_script(self.script)

    def follow(self):
        self.script = self.script[:100]


class ScriptThatIsNoText(ScriptThatIsTooLong):
    says = "Save the script as UTF-8."
    script = "SELECT \ud800"

    def follow(self):
        self.script = self.script.encode("utf-8", "replace").decode()


def kinds(parent=Fault):
    for kind in parent.__subclasses__():
        yield kind
        yield from kinds(kind)


FAULTS = {kind.__name__: kind for kind in kinds()}
OF_CERTIFICATES = {  # which OpenSSL makes
    kind.__name__: kind for kind in (ReachableWithoutTls, KeyWithoutCertificate, KeyWithAPassphrase)
}
OTHERS = {name: kind for name, kind in FAULTS.items() if name not in OF_CERTIFICATES}


def check(fault):
    """The fault is met, then what its hint says is done, and it is not met again."""
    with pytest.raises(SluiceError) as caught:
        fault.meet()
    assert all(part in caught.value.hint for part in fault.says.split("{}")), caught.value.hint
    fault.follow()
    fault.meet()


@pytest.mark.parametrize("kind", OTHERS.values(), ids=OTHERS)
def test_whoever_follows_the_hint_does_not_meet_the_fault_again(kind, tmp_path, monkeypatch):
    check(kind(tmp_path, monkeypatch))


@pytest.mark.usefixtures("processes")
@pytest.mark.parametrize("kind", OF_CERTIFICATES.values(), ids=OF_CERTIFICATES)
def test_whoever_follows_a_hint_about_certificates_does_not_either(kind, tmp_path, monkeypatch):
    check(kind(tmp_path, monkeypatch))
