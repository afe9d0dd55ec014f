# SPDX-License-Identifier: Apache-2.0
"""Boards and the list as files, for any static server."""
import gzip
import json
import os
import subprocess
import threading
import time

import pytest

from servers import until
from yk import board

NOBODY = "Require ip 192.0.2.1"

@pytest.fixture
def shots(own_rig):
    """A function: a rig whose host writes snapshots, and their folder."""
    def make(conf="", **more):
        rig = own_rig(hosts=0)
        folder = os.path.join(rig.folder, "shots")
        os.makedirs(folder)
        os.chmod(folder, 0o777)
        rig.add_host(conf=f'KeepAlive Off\nYoyakuSnapshotDir "{folder}"\n{conf}', **more)
        rig.announce("AH00161")
        return rig, folder

    return make


def path_of(folder, slot):
    value = 0xcbf29ce484222325
    for byte in slot.encode():
        value = (value ^ byte) * 0x100000001b3 % (1 << 64)
    return os.path.join(folder, "boards", f"{value & 0xff:02x}", slot + ".json")


def read(path):
    try:
        with open(path) as file:
            return json.load(file)
    except FileNotFoundError:
        return None


def test_a_slot_has_a_file_though_nobody_asks(shots):
    rig, folder = shots()
    slot = rig.slot({"Stalls": (2, 10)}, pools={"Floor": 9})
    path = path_of(folder, slot)
    said = until(lambda: read(path), 10, "the file")
    assert board.content(said) == board.in_book(rig, slot)
    with gzip.open(path + ".gz", "rt") as file:
        assert json.load(file) == said
    listed = until(lambda: slot in str(read(os.path.join(folder,
                                                         "slots.json"))),
                   10, "the list")
    assert listed
    assert os.stat(path).st_mode & 0o444 == 0o444


def test_what_happens_is_in_the_file_soon(shots):
    rig, folder = shots()
    slot = rig.slot({"Stalls": (2, 10)})
    other = rig.slot({"Stalls": (2, 10)})
    path = path_of(folder, slot)
    until(lambda: read(path) and read(path_of(folder, other)), 10, "the files")
    before = os.stat(path_of(folder, other))
    booker, _ = rig.hold(slot, ["Stalls-1-1"])
    until(lambda: board.content(read(path))["Stalls"][0] == "1", 2, "the hold")
    booker.release()
    until(lambda: board.content(read(path))["Stalls"][0] == "0", 2,
          "the release")
    after = os.stat(path_of(folder, other))
    assert (before.st_ino, before.st_mtime_ns) == \
        (after.st_ino, after.st_mtime_ns)


def test_every_host_writes_and_needs_no_other(shots):
    rig, folder = shots()
    second = os.path.join(rig.folder, "shots2")
    os.makedirs(second)
    os.chmod(second, 0o777)
    rig.add_host(conf=f'KeepAlive Off\nYoyakuSnapshotDir "{second}"\n')
    slot = rig.slot({"Stalls": (1, 4)})
    paths = [path_of(one, slot) for one in (folder, second)]
    until(lambda: all(read(path) for path in paths), 10, "both files")
    rig.hold(slot, ["Stalls-1-1"], host=0)
    until(lambda: all(board.content(read(path))["Stalls"] == "1000"
                      for path in paths), 3, "the hold in both")
    rig.hosts.pop(0).stop()
    rig.hold(slot, ["Stalls-1-2"])
    until(lambda: board.content(read(paths[1]))["Stalls"] == "1100", 3,
          "the hold in the second")
    assert board.content(read(paths[0]))["Stalls"] == "1000"


def test_a_file_is_written_at_most_four_times_a_second(shots):
    """And the last change is in it."""
    rig, folder = shots()
    slot = rig.slot({"Stalls": (10, 40)})
    path, seen, stop = path_of(folder, slot), set(), threading.Event()
    until(lambda: read(path), 10, "the file")

    def watch():
        while not stop.is_set():
            seen.add(os.stat(path).st_ino)
            assert read(path)
            time.sleep(0.002)

    watcher = threading.Thread(target=watch)
    watcher.start()
    began = time.monotonic()
    for seat in range(1, 41):
        rig.hold(slot, [f"Stalls-1-{seat}"])
        time.sleep(0.05)  # so that there is more to write than may be
    took = time.monotonic() - began
    stop.set()
    watcher.join()
    assert len(seen) <= 4 * took + 3
    until(lambda: board.content(read(path)) == board.in_book(rig, slot), 3,
          "the last change")


def test_a_hold_past_its_end_is_free_in_the_file(shots):
    """On a server that nobody asks, and without a sweep."""
    rig, folder = shots(conf="YoyakuSweepInterval 1min\n",
                        location="YoyakuHoldTTL 10s")
    slot = rig.slot({"Stalls": (1, 4)})
    _, said = rig.hold(slot, ["Stalls-1-2"])
    path = path_of(folder, slot)
    until(lambda: read(path) and board.content(read(path))["Stalls"] == "0100",
          5, "the hold")
    end = rig.value("SELECT MAX(until_us) FROM yoyaku_slot_place")
    until(lambda: board.content(read(path))["Stalls"] == "0000", 20, "its end")
    assert end <= rig.now_us() <= end + 1_000_000


def test_a_file_that_is_lost_or_put_back_is_written_again(shots):
    """Somebody tidies up; a process of an old generation that was stopped in
    the middle writes what was so then. Nothing happens in the slot any more."""
    rig, folder = shots()
    slot = rig.slot({"Stalls": (1, 4)})
    paths = [path_of(folder, slot), path_of(folder, slot) + ".gz",
             os.path.join(folder, "slots.json")]
    until(lambda: read(paths[0]) and read(paths[2]), 10, "the files")
    before = [open(path, "rb").read() for path in paths]
    rig.hold(slot, ["Stalls-1-1"])
    until(lambda: board.content(read(paths[0]))["Stalls"] == "1000" and
          open(paths[2], "rb").read() != before[2], 5, "the hold")
    right = [open(path, "rb").read() for path in paths]
    for path, old in zip(paths, before):
        with open(path + ".old", "wb") as file:
            file.write(old)
        os.rename(path + ".old", path)
    until(lambda: [open(path, "rb").read() for path in paths] == right, 5,
          "what is so now")
    for path in paths:
        os.unlink(path)
    until(lambda: all(os.path.exists(path) for path in paths), 5, "the files")
    assert [open(path, "rb").read() for path in paths] == right


def test_what_is_left_of_a_slot_that_is_gone_goes_at_the_start(shots):
    """It was taken from sale while no server ran; and a writer was killed."""
    rig, folder = shots()
    slot, other = rig.slot({"Stalls": (1, 4)}), "of-somebody-else.txt"
    until(lambda: read(path_of(folder, slot)), 10, "the file")
    rig.host.stop()
    ghost, half = path_of(folder, "ghost-1"), path_of(folder, "half-1")
    for path in (ghost, half, os.path.join(folder, "boards")):
        os.makedirs(os.path.dirname(path), exist_ok=True)
    old, new = half + ".4711.new", half + ".4712.new"
    mine = os.path.join(os.path.dirname(half), other)
    elsewhere = os.path.join(folder, "boards", "00", "ghost-1.json")
    os.makedirs(os.path.dirname(elsewhere), exist_ok=True)
    assert elsewhere != ghost
    for path in (ghost, ghost + ".gz", old, new, mine, elsewhere):
        with open(path, "w") as file:
            file.write("{}")
    os.utime(old, (1e9, 1e9))
    subprocess.run(["chmod", "-R", "a+rwX", folder], check=True)
    rig.host.start()
    until(lambda: not os.path.exists(ghost), 10, "the ghost's end")
    until(lambda: not os.path.exists(old), 1, "the end of what is half made")
    assert not os.path.exists(ghost + ".gz")
    assert all(map(os.path.exists, (new, mine, elsewhere)))
    assert read(path_of(folder, slot)) and read(path_of(folder, slot))["free"]


def test_a_slot_on_sale_past_its_start_has_a_file(shots):
    """Also one that this server has not seen before it began."""
    rig, folder = shots()
    night = rig.slot({"Stalls": (1, 4)}, starts="2020-01-01T20:00Z",
                     opens="2020-01-01T10:00Z", closes="2038-01-01T10:00Z")
    over = rig.slot({"Stalls": (1, 4)}, starts="2020-01-01T20:00Z",
                    opens="2020-01-01T10:00Z")
    said = until(lambda: read(path_of(folder, night)), 10, "the file")
    rig.hold(night, ["Stalls-1-1"])
    until(lambda: board.content(read(path_of(folder, night)))["Stalls"] ==
          "1000", 3, f"the hold, not {said}")
    assert read(path_of(folder, over)) is None


def test_a_slot_that_is_not_public_has_no_file(shots):
    rig, folder = shots(conf='''
<Location "/yoyaku/slots/secret-1">
    Require ip 192.0.2.1
</Location>
<LocationMatch "^/yoyaku/slots/hidden-">
    Require ip 192.0.2.1
</LocationMatch>
''')
    secret = rig.slot({"Stalls": (1, 4)}, key="secret-1")
    hidden = rig.slot({"Stalls": (1, 4)}, key="hidden-7")
    public = rig.slot({"Stalls": (1, 4)}, key="secret-10")
    until(lambda: read(path_of(folder, public)), 10, "the public one")
    time.sleep(0.6)
    assert read(path_of(folder, secret)) is None
    assert read(path_of(folder, hidden)) is None
    listed = str(read(os.path.join(folder, "slots.json")))
    assert "secret-10" in listed and "hidden-7" not in listed
    assert "'secret-1'" not in listed


def folder_of(rig, name):
    path = os.path.join(rig.folder, name)
    os.makedirs(path)
    os.chmod(path, 0o777)
    return path


def in_other(rig, name, *more):
    """Open slots of another database: {key: sections}."""
    first, rig.name, halls = rig.name, name, rig.halls
    try:
        rig.halls = {}
        rig.database.create(name)
        rig.ctl("schema")
        for key, sections in more:
            rig.slot(sections, key=key)
    finally:
        rig.name, rig.halls = first, halls


def virtual(rig, name, database=None, text=""):
    """A virtual host, of a database of its own when one is named."""
    lines = [f"ServerName {name}", text]
    if database:
        lines += ["DBDriver mysql", "DBDPersist Off",
                  f'DBDParams "{rig.database.params(database)},reconnect=0"']
    return "\n".join(["<VirtualHost *>", *lines, "</VirtualHost>", ""])


def written(folder):
    """The slots that have a file, and those that the list names."""
    boards = {name[:-len(".json")] for _, _, files in os.walk(
        os.path.join(folder, "boards")) for name in files
        if name.endswith(".json")}
    listed = read(os.path.join(folder, "slots.json"))
    return boards, {slot["slot"] for slot in listed["slots"]} if listed \
        else None


def becomes(folder, keys):
    """Just these have files, and it stays so."""
    until(lambda: written(folder) == (set(keys), set(keys)), 15,
          f"{keys}, not {written(folder)}")
    until(lambda: os.stat(os.path.join(folder, "slots.json")), 1, "the list")
    time.sleep(1.3)  # a list and five turns
    assert written(folder) == (set(keys), set(keys))


def test_a_guard_is_one_on_every_host_and_path_of_its_house_alone(own_rig):
    """Two databases with equal slots, of different size, in virtual hosts; a
    third host shows the second one's at another path."""
    rig = own_rig(hosts=0)
    rig.books = False
    mine, theirs = folder_of(rig, "mine"), folder_of(rig, "theirs")
    names = ("open-1", "secret-1", "member-1", "poster-1", "night-1")
    in_other(rig, "yoyaku_b", *((key, {"Pit": (2, 2)}) for key in names))
    for key in names:
        rig.slot({"Stalls": (1, 4)}, key=key)
    rig.add_host(conf="".join((
        f'KeepAlive Off\nYoyakuSnapshotDir "{mine}"\n',
        virtual(rig, "a.example", text=f"""
<LocationMatch "^/yoyaku/slots/night-">
    {NOBODY}
</LocationMatch>"""),
        virtual(rig, "b.example", "yoyaku_b", f"""
YoyakuSnapshotDir "{theirs}"
<Location "/yoyaku/slots/member-1">
    AuthType Basic
    AuthName members
    Require valid-user
</Location>
<Location "/yoyaku/slots/open-1">
    <LimitExcept GET HEAD>
        {NOBODY}
    </LimitExcept>
</Location>"""),
        virtual(rig, "c.example", "yoyaku_b", f"""
YoyakuSnapshotDir "{theirs}"
<Location "/tickets">
    SetHandler yoyaku
</Location>
<LocationMatch "^/tickets/slots/secret-">
    {NOBODY}
</LocationMatch>
<Location "/tickets/slots/poster-1">
    <LimitExcept POST>
        {NOBODY}
    </LimitExcept>
</Location>"""))))
    becomes(mine, ["open-1", "secret-1", "member-1", "poster-1"])
    becomes(theirs, ["open-1", "night-1"])
    for folder, keys, section, places in (
            (mine, ("open-1", "secret-1"), "Stalls", "0000"),
            (theirs, ("open-1", "night-1"), "Pit", "0000")):
        for key in keys:
            assert board.content(read(path_of(folder, key))) == \
                {section: places}
    answer = rig.host.booker().hold("night-1", ["Pit-1-2"],
                                    headers={"Host": "b.example"})
    assert answer.status_code == 201, answer.text
    until(lambda: board.content(read(path_of(theirs, "night-1"))) ==
          {"Pit": "0100"}, 3, "the hold in theirs")
    assert board.content(read(path_of(mine, "open-1"))) == {"Stalls": "0000"}


@pytest.mark.parametrize("guard", [
    f"<If \"%{{REMOTE_ADDR}} != '192.0.2.1'\">\n{NOBODY}\n</If>",
    f'<LocationMatch "/members/">\n{NOBODY}\n</LocationMatch>\n'
    '<LocationMatch "^/(box|members)">\nSetHandler yoyaku\n</LocationMatch>',
    '<Location "/yoyaku/*">\n<RequireAll>\nRequire all granted\n<RequireNone>'
    "\nRequire all granted\n</RequireNone>\n</RequireAll>\n</Location>"])
def test_in_doubt_nothing_has_a_file(own_rig, guard):
    """And what an earlier configuration wrote is taken away."""
    rig = own_rig(hosts=0)
    rig.books = False
    folder = folder_of(rig, "shots")
    slot = rig.slot({"Stalls": (1, 4)})
    host = rig.add_host(conf="".join((
        f'YoyakuSnapshotDir "{folder}"\n', virtual(rig, "a.example"),
        f'IncludeOptional "{rig.folder}/b.*"\n')))
    becomes(folder, [slot])
    with open(os.path.join(rig.folder, "b.conf"), "w") as file:
        file.write(virtual(rig, "b.example", text=guard))
    host.graceful()
    until(lambda: not written(folder)[0] and not written(folder)[1], 10,
          "no file")


def test_two_houses_do_not_write_to_one_folder(own_rig):
    rig = own_rig(hosts=0)
    rig.books = False
    shared, own = folder_of(rig, "shared"), folder_of(rig, "own")
    os.symlink(shared, os.path.join(rig.folder, "alias"))
    for name in ("yoyaku_b", "yoyaku_c"):
        in_other(rig, name, ("same-1", {"Pit": (2, 2)}))
    rig.slot({"Stalls": (1, 4)}, key="same-1")
    host = rig.add_host(conf="".join((
        f'YoyakuSnapshotDir "{shared}"\n',
        virtual(rig, "a.example"),
        virtual(rig, "b.example", "yoyaku_b",
                f'YoyakuSnapshotDir "{rig.folder}/alias/"'),
        virtual(rig, "c.example", "yoyaku_c",
                f'YoyakuSnapshotDir "{own}"'))))
    becomes(own, ["same-1"])
    assert os.listdir(shared) == []
    said = [line for line in host.complaints() if "YK0447" in line]
    assert len(said) >= 2 and all("YoyakuSnapshotDir" in line for line in said)
