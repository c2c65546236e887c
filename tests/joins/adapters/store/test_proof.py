"""The race that proves a store: one that looks first and writes then is found out."""

import pytest

from joins.adapters.store_path import prove_conditional_puts
from joins.plan.errors import StoreRefusedError
from tests.support.object_store import object_store

pytestmark = pytest.mark.usefixtures("processes")  # a store is a server


def test_a_store_with_conditional_puts_passes_and_nothing_stays_there():
    with object_store() as store:
        prove_conditional_puts(store.path("warehouse/out"))
        assert store.keys() == []
        store.requests.clear()
        prove_conditional_puts(store.path("warehouse/other"))
        assert store.requests["PUT"] == 0, "what is proven is not asked again for a while"


def test_a_store_that_looks_first_and_writes_then_is_refused():
    with (
        object_store(threaded=True) as store,
        pytest.raises(StoreRefusedError, match="does not keep conditional puts") as refused,
    ):
        prove_conditional_puts(store.path("warehouse/out"))
    assert "conditional writes" in refused.value.hint
    with object_store() as other:
        prove_conditional_puts(other.path("warehouse/out"))


def test_a_store_that_does_not_know_the_condition_is_refused():
    with object_store() as store:
        store.forget_conditions()
        with pytest.raises(StoreRefusedError, match=r"of 12 writers of one key 12 succeeded"):
            prove_conditional_puts(store.path("warehouse/out"))
        assert store.keys() == []


def test_a_bucket_that_is_not_there_is_named():
    with object_store() as store:
        store.client.delete_bucket(Bucket=store.bucket)
        with pytest.raises(StoreRefusedError, match="takes no object"):
            prove_conditional_puts(store.path("warehouse/out"))
        store.client.create_bucket(Bucket=store.bucket)
        prove_conditional_puts(store.path("warehouse/out"))
