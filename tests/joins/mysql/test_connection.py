"""Connections of one process share what each of them would have to read anew."""

import pytest

from joins.adapters.mysql_connection import MysqlConnectionConfig, open_connection

pytestmark = pytest.mark.integration


def test_connections_share_the_certificates_and_need_no_tls(mariadb):
    config = MysqlConnectionConfig(
        "127.0.0.1", mariadb.port, mariadb.cdc_user, mariadb.cdc_password, "d", "t"
    )
    first, second = open_connection(config), open_connection(config)
    try:
        assert first.ctx is second.ctx
        assert not first._ssl_required
        with second.cursor() as cursor:
            cursor.execute("SELECT 1")
            assert cursor.fetchone() == (1,)
    finally:
        first.close()
        second.close()
