import pytest
from shop.models import Customer, Order


@pytest.fixture(autouse=True)
def orders(named):
    customers = Customer.objects.bulk_create([Customer(name=f"customer {i}") for i in range(20)])
    Order.objects.bulk_create([Order(customer=customer) for customer in customers])


def test_names_at_once():
    assert len({order.customer.name for order in Order.objects.select_related("customer")}) == 20


def test_names_one_by_one():
    """An N+1: the assertion holds, and the guard does not."""
    assert len({order.customer.name for order in Order.objects.all()}) == 20
