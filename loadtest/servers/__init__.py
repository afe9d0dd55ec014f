# SPDX-License-Identifier: Apache-2.0
"""Private servers: started from nothing, stopped without a trace.

One class a server. The rig and the tests start theirs here, so both run what
the other runs. Python's own library only: this works on a machine that has
nothing but python3.
"""
from .database import Database
from .httpd import PAGES, Httpd
from .memcached import Memcached
from .process import Process, ServerError, free_port, until

__all__ = ["PAGES", "Database", "Httpd", "Memcached", "Process",
           "ServerError", "free_port", "until"]
