# SPDX-License-Identifier: Apache-2.0
"""What the tests over HTTP stand on: a Rig with Hosts, and Bookers at it."""
from .booker import Booker
from .host import Host, beside_main
from .rig import POOL_ROW, Rig
from .wire import Wire

__all__ = ["POOL_ROW", "Booker", "Host", "Rig", "Wire", "beside_main"]
