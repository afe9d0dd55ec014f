# SPDX-License-Identifier: Apache-2.0
"""build it, start it, put a hall on sale; stays up until Ctrl-C"""
import argparse
import os
import signal
import sys
import time

from servers import ServerError

from . import house


def parser():
    made = argparse.ArgumentParser(prog="loadtest/rig up", description=__doc__)
    made.add_argument("--detach", action="store_true",
                      help="come back when it is up; `down` stops it")
    made.add_argument("--hall", metavar="FILE|generated:SECTIONSxPLACES",
                      help="what is on sale (a theatre of 1,011 seats)")
    made.add_argument("--port", type=int, default=8080,
                      help="of the first web host, or the next free one (8080)")
    made.add_argument("--mpm", choices=["prefork", "event", "worker"],
                      default="prefork")
    made.add_argument("--workers", type=int, default=20, metavar="N",
                      help="requests at a time, of each web host (20)")
    made.add_argument("--hosts", type=int, default=1, metavar="N",
                      help="web hosts on the one database (1)")
    made.add_argument("--conf", metavar="FILE",
                      help="included last in httpd's configuration")
    return made


def lines_to_paste(made):
    """Hold, look, confirm; then hold again and let go."""
    url, places = made.hosts[0].url, made.some_places(4)
    jar = f"-w '\\n' -b {house.RIG}/jar -c {house.RIG}/jar"
    places += places[:1] * (4 - len(places))

    def hold(one, other):
        names = f'"{one}"' if one == other else f'"{one}","{other}"'
        return (f"curl -s {jar} -H 'Content-Type: application/json' -d "
                f"'{{\"places\":[{names}]}}' "
                f"{url}/yoyaku/slots/{house.SLOT}/holds")
    return [hold(places[0], places[1]),
            f"curl -s {jar} {url}/yoyaku/order",
            f"curl -s {jar} -X POST {url}/yoyaku/order/confirm",
            f"{hold(places[2], places[3])} && "
            f"curl -s {jar} -X DELETE {url}/yoyaku/order"]


def stop_by_exception(*_):
    raise KeyboardInterrupt


def wait(made):
    """Until somebody stops us, or a server goes."""
    servers = [made.database, made.memcached, *made.hosts]
    while True:
        time.sleep(0.5)
        for server in servers:
            if server is not None and not server.process.alive():
                house.say(f"{server.process.argv[0]} has ended; see "
                          f"{server.process.log}")
                return 1


def say_where(made):
    said = [host.url + path for host in made.hosts
            for path in ("/yoyaku/", "/yoyaku-status")]
    said += ["", "# hold two places, look at the order, confirm it;",
             "# then hold two others and let them go", *lines_to_paste(made)]
    # At once: who reads only the first line has not gone before the last.
    sys.stdout.write("\n".join(said) + "\n")
    sys.stdout.flush()


def run(argv):
    args = parser().parse_args(argv)
    if args.conf and not os.path.exists(args.conf):
        raise ServerError(f"there is no file {args.conf}")
    house.hall_known(args.hall)
    if args.workers < 1 or args.hosts < 1:
        raise ServerError("--workers and --hosts are 1 or more")
    if not 1 <= args.port <= 65535:
        raise ServerError("--port is 1 to 65535")
    if house.standing():
        raise ServerError(f"one is up at {house.read_note()['url']}; "
                          "loadtest/rig down stops it")
    house.prepare()
    made = house.House(args.hall, args.port, args.mpm, args.workers,
                       args.hosts, args.conf)
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, stop_by_exception)
    staying = False
    try:
        house.say("starting")
        made.start()
        say_where(made)
        staying = args.detach
        if args.detach:
            return 0
        house.say("up; Ctrl-C stops it")
        return wait(made)
    except KeyboardInterrupt:
        return 0 if made.hosts else 130
    finally:
        if not staying:
            for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT):
                signal.signal(number, signal.SIG_IGN)
            house.say("stopping")
            house.down()
