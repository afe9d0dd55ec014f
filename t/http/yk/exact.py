# SPDX-License-Identifier: Apache-2.0
"""Many bookers at once who take what there is, and what must then agree: the
count, what they were told, and the rows of the book."""
import collections
import random
import threading

BOOKERS, PLACES = 60, 200
PATIENCE = 300  # journeys end by selling out, long before


def crowd(n, journey):
    """n bookers begin at the same moment; what journey(i) gives, by i."""
    start, given, broken = threading.Barrier(n), [None] * n, []

    def run(i):
        try:
            start.wait(120)
            given[i] = journey(i)
        except Exception as error:  # told below, by the test's own thread
            broken.append(error)

    threads = [threading.Thread(target=run, args=(i,), daemon=True)
               for i in range(n)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(PATIENCE)
        assert not thread.is_alive(), f"a booker waited {PATIENCE} s in vain"
    if broken:
        raise broken[0]
    return given


class Tally:
    """What the bookers were told, to be compared with the book."""

    def __init__(self):
        self.lock = threading.Lock()
        self.places, self.people = collections.Counter(), 0
        self.statuses = collections.Counter()
        self.orders = set()

    def note(self, answer):
        said = answer.json()
        with self.lock:
            self.statuses[answer.status_code, said.get("reason")] += 1
            if answer.status_code in (200, 201):
                self.orders.add(said["number"])
        return said

    def count(self, lines, sign=1):
        with self.lock:
            for line in lines:
                if "place" in line:
                    self.places[line["place"]] += sign
                self.people += sign * line.get("quantity", 1)

    def give_back(self, booker, lines):
        """This booker leaves again; counted before the places are free."""
        self.count(lines, -1)
        booker.http.close()  # a kept line may be closed under our hands
        answer = booker.release()
        with self.lock:
            self.statuses[answer.status_code, None] += 1
            self.orders.discard(booker.number)


class Crowd:
    """
    rig, slot  where they book; each booker on the next host
    rest       one booking of so many is given back at once (0: none)
    """

    def __init__(self, rig, slot, rest=0):
        self.rig, self.slot, self.rest = rig, slot, rest
        self.tally = Tally()

    def _hold(self, rng, seed, **what):
        """What was taken, None when it was given back; and what was said."""
        booker = self.rig.booker(host=seed % len(self.rig.hosts))
        said = self.tally.note(booker.hold(self.slot, **what))
        if "lines" not in said:
            return False, said
        self.tally.count(said["lines"])
        if self.rest and rng.randrange(self.rest) == 0:
            self.tally.give_back(booker, said["lines"])
            return None, said
        return True, said

    def named(self, guids, seed):
        """Ask for what looks free until nothing does."""
        rng, left = random.Random(seed), list(guids)
        while left:
            wanted = rng.sample(left, min(len(left), rng.randint(1, 4)))
            held, said = self._hold(rng, seed, places=wanted)
            gone = set(wanted) if held else set()
            if held is False:
                assert said["reason"] == "taken", said
                gone = {place["place"] for place in said["places"]}
                assert gone and gone <= set(wanted), said
            left = [guid for guid in left if guid not in gone]

    def counted(self, area, seed, most=4, **more):
        """Ask for parties; smaller ones when the large do not fit any more."""
        rng = random.Random(seed)
        while most > 0:
            n = rng.randint(1, most)
            held, said = self._hold(rng, seed, area=area, quantity=n, **more)
            if held is False:
                assert said["reason"] == "sold_out", said
                assert said["free"] < n, said
                most = min(n - 1, said["free"])

    def faults(self, places=PLACES):
        """Sentences about what does not agree; [] when all does."""
        tally, wrong = self.tally, []
        bad = {key: n for key, n in tally.statuses.items()
               if key[0] not in (200, 201, 409)}
        if bad:
            wrong.append(f"answers that should not be: {bad}")
        twice = [place for place, n in tally.places.items() if n > 1]
        if twice:
            wrong.append(f"sold twice: {twice[:5]}")
        if tally.people > places:
            wrong.append(f"oversold: {tally.people} of {places}")
        if tally.people < places:
            wrong.append(f"unsold: {places - tally.people} of {places}")
        return wrong + self._rows(places)

    def _rows(self, places):
        """Every row was answered, every answer has its row."""
        rig, wrong = self.rig, []
        slot_id = rig.value("SELECT slot_id FROM yoyaku_slot WHERE slot_key "
                            "= %s", (self.slot,))
        taken = {row["guid"].decode() for row in rig.rows(
            "SELECT guid FROM yoyaku_slot_place t JOIN yoyaku_slot s USING "
            "(slot_id) JOIN yoyaku_place p ON p.hall_id = s.hall_id AND "
            "p.place_no = t.place_no WHERE slot_id = %s AND t.state = 1",
            (slot_id,))}
        told = {place for place, n in self.tally.places.items() if n > 0}
        if taken != told:
            wrong.append(f"rows and answers differ: {taken ^ told}")
        lines = rig.rows("SELECT order_id, SUM(quantity) AS n FROM "
                         "yoyaku_booking WHERE slot_id = %s AND live = 1 "
                         "GROUP BY order_id", (slot_id,))
        if sum(row["n"] for row in lines) != places:
            wrong.append(f"{sum(row['n'] for row in lines)} live of {places}")
        if len(lines) != len(self.tally.orders):
            wrong.append(f"{len(lines)} orders in the book, "
                         f"{len(self.tally.orders)} were answered")
        return wrong

    def agree(self, places=PLACES):
        wrong = self.faults(places)
        assert not wrong, "; ".join(wrong)
        self.rig.verify_book([self.slot])


def guids(name, rows, seats):
    return [f"{name}-{row}-{seat}" for row in range(1, rows + 1)
            for seat in range(1, seats + 1)]


# ---- the four houses of 200 places; each gives (slot, journey) ----

def named_house(rig, rest=0):
    made = Crowd(rig, rig.slot({"Stalls": (10, 20)}), rest)
    return made, lambda i: made.named(guids("Stalls", 10, 20), i)


def assigned_house(rig, rest=0):
    made = Crowd(rig, rig.slot({"Stalls": (10, 20)},
                               areas={"Stalls": "assigned"}), rest)
    return made, lambda i: made.counted("Stalls", i)


def pooled_house(rig, rest=0):
    made = Crowd(rig, rig.slot(pools={"Floor": PLACES}), rest)
    return made, lambda i: made.counted("Floor", i)


def mixed_house(rig, rest=0):
    made = Crowd(rig, rig.slot(
        {"Stalls": (4, 20), "Gallery": (7, 10), "Pit": (1, 1)},
        areas={"Gallery": "assigned", "Pit": "pooled:50"}), rest)

    def journey(i):
        parts = [lambda: made.named(guids("Stalls", 4, 20), i),
                 lambda: made.counted("Gallery", i),
                 lambda: made.counted("Pit", i)]
        for part in parts[i % 3:] + parts[:i % 3]:
            part()

    return made, journey


HOUSES = {"named": named_house, "assigned": assigned_house,
          "pooled": pooled_house, "all three": mixed_house}
