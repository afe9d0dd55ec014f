# SPDX-License-Identifier: Apache-2.0
"""Somebody with a browser of his own: cookies, name, the order in hand."""
import requests


def session():
    made = requests.Session()
    made.trust_env = False  # no proxy stands between us and the loopback
    made.headers["Accept"] = "application/json"
    return made


def _exchange(give, take):
    """What is given and taken, each only when there is some."""
    made = {"give": list(give)} if give else {}
    return {**made, "take": {"lines": list(take)}} if take else made


class Booker:
    """
    name     what YoyakuBooker sees (header X-Booker); "" for nobody
    cookies  False: the token goes along as the header Yoyaku-Order
    Every call returns the requests.Response.
    """

    def __init__(self, url, name="", cookies=False, timeout=60):
        self.url, self.name, self.timeout = url, name, timeout
        self.cookies, self.token, self.number = cookies, None, None
        self.http = session()
        if name:
            self.http.headers["X-Booker"] = name

    def ask(self, method, path, json=None, key=None, token=None, headers=None,
            **more):
        head = dict(headers or {})
        if key is not None:
            head["Idempotency-Key"] = key
        token = self.token if token is None else token
        if token and not self.cookies:
            head["Yoyaku-Order"] = token
        if not self.cookies:
            self.http.cookies.clear()
        return self.http.request(method, self.url + path, json=json,
                                 headers=head, timeout=self.timeout, **more)

    def get(self, path, **more):
        return self.ask("GET", path, **more)

    def post(self, path, json=None, **more):
        return self.ask("POST", path, json=json, **more)

    # ---- the journey ----

    def hold(self, slot=None, places=None, tariff=None, area=None,
             quantity=None, lines=None, key=None, token=None, headers=None,
             **body):
        """places or area of one slot, or `lines` over several; what is left
        over in `body` goes into the request (together, confirm, new, ...)."""
        for name, value in (("places", places), ("tariff", tariff),
                            ("area", area), ("quantity", quantity),
                            ("lines", lines)):
            if value is not None:
                body[name] = value
        path = f"/yoyaku/slots/{slot}/holds" if slot else "/yoyaku/holds"
        answer = self.post(path, body, key=key, token=token, headers=headers)
        if answer.status_code == 201:
            self.token = answer.json()["token"]
            self.number = answer.json()["number"]
        return answer

    def order(self):
        return self.get("/yoyaku/order")

    def patch(self, **body):
        return self.ask("PATCH", "/yoyaku/order", json=body)

    def checkout(self, key=None):
        return self.post("/yoyaku/order/checkout", {}, key=key)

    def reopen(self, key=None):
        return self.post("/yoyaku/order/reopen", {}, key=key)

    def confirm(self, key=None):
        return self.post("/yoyaku/order/confirm", {}, key=key)

    def exchange(self, give=(), take=(), key=None, **body):
        return self.post("/yoyaku/order/exchange",
                         {**_exchange(give, take), **body}, key=key)

    def remove(self, line, key=None):
        return self.ask("DELETE", f"/yoyaku/order/lines/{line}", key=key)

    def release(self, key=None):
        return self.ask("DELETE", "/yoyaku/order", key=key)


class Shop:
    """The application behind the server: calls yoyaku-shop with a name."""

    def __init__(self, url, user="shop", password="shop", timeout=60):
        self.url, self.timeout = url, timeout
        self.http = session()
        if user:
            self.http.auth = (user, password)

    def ask(self, method, path, json=None, key=None, **more):
        head = {"Idempotency-Key": key} if key else {}
        return self.http.request(method, f"{self.url}/yoyaku-shop{path}",
                                 json=json, headers=head, timeout=self.timeout,
                                 **more)

    def order(self, number):
        return self.ask("GET", f"/orders/{number}")

    def orders(self, **query):
        return self.ask("GET", "/orders", params=query)

    def confirm(self, number, attempt=0, amount="0.00", currency=None,
                payment="pay-1", key=None):
        return self.ask("POST", f"/orders/{number}/confirm",
                        {"attempt": attempt, "amount": amount,
                         "currency": currency, "payment": payment}, key=key)

    def cancel(self, number, reason="", key=None):
        return self.ask("POST", f"/orders/{number}/cancel",
                        {"reason": reason}, key=key)

    def release(self, number, reason="", key=None):
        return self.ask("POST", f"/orders/{number}/release",
                        {"reason": reason}, key=key)

    def exchange(self, number, give=(), take=(), key=None, **body):
        return self.ask("POST", f"/orders/{number}/exchange",
                        {**_exchange(give, take), **body}, key=key)

    def hold(self, booker, lines, key=None, **body):
        return self.ask("POST", "/holds",
                        {"booker": booker, "lines": lines, **body}, key=key)
