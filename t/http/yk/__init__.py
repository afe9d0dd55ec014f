# SPDX-License-Identifier: Apache-2.0
"""What the tests over HTTP stand on: a Rig with Hosts, and Bookers at it."""
from .booker import Booker
from .host import Host
from .rig import Rig
from .wire import Wire

__all__ = ["Booker", "Host", "Rig", "Wire"]
