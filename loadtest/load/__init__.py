# SPDX-License-Identifier: Apache-2.0
"""Loads and what is said about them.

  stand     servers for one run, or somebody else's by their address
  arms      what we compare with: folders of loadtest/arms
  driver    the crowd (a C program), its script and what it says
  sampler   looks beside the load: scoreboard, memory, CPU, locks, queues
  verdict   was it right? then, and only then, how fast
  rush, ladder, measure, compare, report, sizing: the commands
"""
