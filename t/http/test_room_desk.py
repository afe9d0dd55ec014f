# SPDX-License-Identifier: Apache-2.0
"""A waiting room before the desk: an order keeps its visitor's pass, and its
confirmation ends it, whoever confirms."""
import os
import time

import pytest

pytestmark = pytest.mark.own


@pytest.fixture
def sale(own_rig, tmp_path):
    key = tmp_path / "key"
    key.write_bytes(os.urandom(32))
    os.chmod(key, 0o600)
    rig = own_rig(
        location="YoyakuWaitingRoom sale active=1 rate=100/s grace=1s idle=2s "
                 "visit=3s orders=1\nYoyakuConfirm booker",
        conf=f"YoyakuKeyFile {key}\n"
             '<Location "/yoyaku-status">\nSetHandler yoyaku-status\n'
             "</Location>")
    rig.key = rig.slot(pools={"Hall": 50})
    time.sleep(1.2)  # a new file calls nobody for one grace
    return rig


def inside(rig):
    """A visitor with a pass."""
    visitor = rig.host.booker(cookies=True)
    assert visitor.get("/yoyaku/slots").status_code == 200
    assert "yoyaku_pass_sale" in visitor.http.cookies
    return visitor


def room(rig):
    return rig.host.get("/yoyaku-status?json").json()["rooms"][0]


def hold(visitor, rig):
    return visitor.post(f"/yoyaku/slots/{rig.key}/holds",
                        json={"area": "Hall", "quantity": 1})


def test_a_held_order_keeps_the_pass_and_its_confirmation_ends_it(sale):
    visitor = inside(sale)
    assert hold(visitor, sale).status_code == 201
    other = sale.host.booker(cookies=True)
    queued = other.get("/yoyaku/slots")
    assert (queued.status_code, queued.json()["reason"]) == (503, "queue")
    time.sleep(4)  # longer than idle and visit
    assert visitor.get("/yoyaku/order").status_code == 200
    assert visitor.post("/yoyaku/order/confirm").status_code == 200
    assert visitor.get("/yoyaku/order").status_code == 200  # he may still look
    assert hold(visitor, sale).json()["reason"] == "queue"
    assert room(sale)["counters"]["bought"] == 1
    assert other.get("/yoyaku/slots").status_code == 200


def test_the_shop_s_confirmation_ends_it_too(sale):
    visitor = inside(sale)
    order = hold(visitor, sale).json()
    checkout = visitor.post("/yoyaku/order/checkout").json()
    time.sleep(4)
    assert room(sale)["passes"] == 1
    paid = sale.host.shop().confirm(order["number"], checkout["attempt"],
                                    checkout["total"], checkout["currency"])
    assert paid.status_code == 200, paid.text
    assert room(sale)["passes"] == 0
    assert room(sale)["counters"]["bought"] == 1


def test_a_released_order_lets_the_pass_end(sale):
    visitor = inside(sale)
    assert hold(visitor, sale).status_code == 201
    assert visitor.ask("DELETE", "/yoyaku/order").status_code == 200
    time.sleep(2.5)
    assert room(sale)["passes"] == 0
    assert room(sale)["counters"]["idled"] == 1


def test_one_of_several_orders_released_leaves_the_pass_to_the_others(sale):
    visitor = inside(sale)
    first, second = (hold(visitor_without_order(visitor), sale).json()
                     for _ in range(2))
    assert first["number"] != second["number"]
    gone = visitor.ask("DELETE", "/yoyaku/order",
                       headers={"Yoyaku-Order": first["token"]})
    assert gone.status_code == 200 and gone.json()["state"] == "released"
    time.sleep(4)  # longer than idle and visit
    assert visitor.get("/yoyaku/order").status_code == 200
    assert room(sale)["passes"] == 1
    assert visitor.post("/yoyaku/order/confirm").status_code == 200
    assert room(sale)["counters"]["bought"] == 1
    assert room(sale)["passes"] == 0


def visitor_without_order(visitor):
    """The same visitor with his pass, in whose basket is nothing yet."""
    visitor.http.cookies.pop("yoyaku_order", None)
    return visitor
