#! /usr/bin/env python3
# Copyright (c) 2026 The PlanB for Open vSwitch Authors.
#
# Licensed under the Apache License, Version 2.0 (the "License");
# you may not use this file except in compliance with the License.
# You may obtain a copy of the License at:
#
#     http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software
# distributed under the License is distributed on an "AS IS" BASIS,
# WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied.
# See the License for the specific language governing permissions and
# limitations under the License.

"""Just enough OpenFlow 1.4 to change routes quickly, for planb-bench-ovs."""

import select
import socket
import struct
import time

from planb_traffic import Failure, nexthop_mac

VERSION = 5
HELLO, ERROR, ECHO_REQUEST, ECHO_REPLY = 0, 1, 2, 3
FLOW_MOD, BARRIER_REQUEST, BARRIER_REPLY = 14, 20, 21
ADD, MODIFY_STRICT, DELETE_STRICT = 0, 2, 4
NO_BUFFER = ANY = 0xffffffff


def oxm(field, value, mask=b""):
    """An OXM_OF_* match or set_field argument."""
    return (struct.pack("!HBB", 0x8000, field << 1 | bool(mask),
                        len(value) + len(mask)) + value + mask)


def pad8(data):
    return data + bytes(-len(data) % 8)


def route_match(route):
    fields = oxm(5, b"\x86\xdd")
    if route.plen == 128:
        fields += oxm(27, route.prefix.to_bytes(16, "big"))
    elif route.plen:
        mask = (1 << 128) - (1 << (128 - route.plen))
        fields += oxm(27, route.prefix.to_bytes(16, "big"),
                      mask.to_bytes(16, "big"))
    return pad8(struct.pack("!HH", 1, 4 + len(fields)) + fields)


def route_actions(hop, port):
    """mod_dl_dst, dec_ttl, output, as one instruction."""
    set_field = oxm(3, nexthop_mac(hop))
    actions = pad8(struct.pack("!HH", 25, 16) + set_field)
    actions += struct.pack("!HH4x", 24, 8)
    actions += struct.pack("!HHIH6x", 0, 16, port, 0)
    return struct.pack("!HH4x", 4, 8 + len(actions)) + actions


class Connection:
    """A connection to the bridge whose management socket is 'path'."""

    def __init__(self, path):
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.settimeout(60)
        self.sock.connect(path)
        self.data = b""
        self.xid = 0
        self.send(self.message(HELLO))

    def message(self, kind, body=b"", xid=None):
        if xid is None:
            self.xid += 1
            xid = self.xid
        return struct.pack("!BBHI", VERSION, kind, 8 + len(body), xid) + body

    def route_mod(self, command, table, route, hop, port):
        """Returns a message that adds, modifies or deletes 'route', which
        leads to next hop 'hop' behind 'port' then."""
        body = struct.pack("!QQBBHHHIIIHH", 0, 0, table, command, 0, 0,
                           route.priority, NO_BUFFER, ANY, ANY, 0, 0)
        body += route_match(route)
        if command != DELETE_STRICT:
            body += route_actions(hop, port)
        return self.message(FLOW_MOD, body)

    def send(self, data):
        self.sock.sendall(data)

    def receive(self, timeout):
        """Returns (type, xid, body) of the next message, or None if there is
        none for 'timeout' seconds.  Answers echo requests."""
        deadline = time.monotonic() + timeout
        while True:
            if len(self.data) >= 8:
                _, kind, length, xid = struct.unpack_from("!BBHI", self.data)
                if len(self.data) >= length:
                    body = self.data[8:length]
                    self.data = self.data[length:]
                    if kind == ERROR:
                        raise Failure("OpenFlow error %d, code %d"
                                      % struct.unpack_from("!HH", body))
                    if kind == ECHO_REQUEST:
                        self.send(self.message(ECHO_REPLY, body, xid))
                        continue
                    return kind, xid, body
            left = deadline - time.monotonic()
            if left < 0 or not select.select([self.sock], [], [], left)[0]:
                return None
            chunk = self.sock.recv(1 << 16)
            if not chunk:
                raise Failure("the switch has closed the connection")
            self.data += chunk

    def barrier(self, timeout=60):
        """Waits until the switch has done all that it was sent.  Returns the
        time of its answer, as time.time() has it."""
        request = self.message(BARRIER_REQUEST)
        self.send(request)
        xid = self.xid
        while True:
            answer = self.receive(timeout)
            if answer is None:
                raise Failure("the switch does not answer a barrier")
            if answer[:2] == (BARRIER_REPLY, xid):
                return time.time()

    def close(self):
        self.sock.close()
