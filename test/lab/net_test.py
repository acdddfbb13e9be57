"""Tests of net.sh, in a network of their own. Skipped (77) without root or its tools."""

import os
import pathlib
import shutil
import subprocess
import sys
import time
import unittest

NET = pathlib.Path(__file__).resolve().parent / "net.sh"
NAME = f"orlabtest{os.getpid()}"
TOOLS = ("ip", "bridge", "tc", "nft", "ethtool", "unshare")
PACKETS = 2000

# Says that it is there, and how many datagrams came until none did for half a second.
RECEIVE = """
import socket
port = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
port.setsockopt(socket.SOL_SOCKET, 33, 4 << 20)  # SO_RCVBUFFORCE: room for all of them
port.bind(("10.88.0.2", 9000))
print("ready", flush=True)
port.settimeout(20)
count = 0
try:
    while port.recv(100):
        count += 1
        port.settimeout(0.5)
except TimeoutError:
    print(count)
"""
SEND = f"""
import socket, time
port = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
for i in range({PACKETS}):
    port.sendto(b"x", ("10.88.0.2", 9000))
    if i % 50 == 0:
        time.sleep(0.002)
"""


def net(*arguments, check=True):
    return subprocess.run([NET, *arguments], text=True, capture_output=True, timeout=60,
                          check=check, env={**os.environ, "LAB_NAME": NAME})


def namespaces():
    listed = subprocess.run(["ip", "netns", "list"], text=True, capture_output=True, check=True)
    return {line.split()[0] for line in listed.stdout.splitlines() if line.startswith(NAME)}


class Net(unittest.TestCase):
    def tearDown(self):
        net("down")
        self.assertEqual(namespaces(), set())

    def received(self):
        receiver = subprocess.Popen([NET, "exec", "1", sys.executable, "-c", RECEIVE], text=True,
                                    stdout=subprocess.PIPE,
                                    env={**os.environ, "LAB_NAME": NAME})
        self.assertEqual(receiver.stdout.readline(), "ready\n")
        net("exec", "0", sys.executable, "-c", SEND)
        return int(receiver.communicate(timeout=60)[0])

    def test_clean_loses_nothing_and_loss_about_what_it_says(self):
        net("up", "2", "mtu")
        self.assertEqual(self.received(), PACKETS)
        net("up", "2", "loss30")  # a deviation of 200 is ten times the standard one
        self.assertLess(abs(self.received() - 0.7 * PACKETS), 200)

    def test_conditions(self):
        for condition, offload, rate in (("clean", "on", ""), ("mtu", "off", ""),
                                         ("gigabit", "on", "rate 1Gbit")):
            net("up", "1", condition)
            features = net("exec", "0", "ethtool", "-k", "eth0").stdout
            self.assertIn(f"tcp-segmentation-offload: {offload}", features)
            self.assertIn(f"generic-receive-offload: {offload}", features)
            self.assertIn(rate, net("exec", "0", "tc", "qdisc", "show", "dev", "eth0").stdout)

    def test_ranks_have_names_and_addresses(self):
        net("up", "3")
        self.assertEqual(net("exec", "2", "hostname").stdout, f"{NAME}-2\n")
        self.assertEqual(net("agent", "10.88.0.2", "hostname", "-s").stdout, f"{NAME}-1\n")
        self.assertIn("10.88.0.3/24", net("exec", "2", "ip", "-br", "address").stdout)

    def test_down_ends_what_runs_there_and_nothing_else(self):
        net("up", "1")
        inside = subprocess.Popen([NET, "exec", "0", "sleep", "100"],
                                  env={**os.environ, "LAB_NAME": NAME})
        outside = subprocess.Popen(["sleep", "100"])
        try:
            while "sleep" not in pathlib.Path(f"/proc/{inside.pid}/comm").read_text():
                time.sleep(0.01)  # it is still on its way into the namespace
            net("down")
            self.assertNotEqual(inside.wait(timeout=20), 0)
            self.assertIsNone(outside.poll())
        finally:
            inside.kill()
            outside.kill()
            outside.wait()

    def test_a_namespace_of_somebody_else_stays(self):
        foreign = f"{NAME}-0"
        subprocess.run(["ip", "netns", "add", foreign], check=True)
        try:
            done = net("up", "1", check=False)
            self.assertNotEqual(done.returncode, 0)
            self.assertIn(f"namespace {foreign} is there and not mine", done.stderr)
            net("down")
            self.assertEqual(namespaces(), {foreign})
        finally:
            subprocess.run(["ip", "netns", "del", foreign], check=True)

    def test_nonsense_is_refused_before_anything_is_made(self):
        for arguments in (("up",), ("up", "0"), ("up", "65"), ("up", "x"), ("up", "2", "loss"),
                          ("up", "2", "loss0"), ("up", "2", "loss100"), ("up", "2", "loss1.2.3"),
                          ("up", "2", "rain"), ("exec", "0", "true"), ("exec",), ("frob",)):
            done = net(*arguments, check=False)
            self.assertNotEqual(done.returncode, 0, arguments)
            self.assertNotEqual(done.stderr, "", arguments)
        self.assertEqual(namespaces(), set())


if __name__ == "__main__":
    may = os.geteuid() == 0 and all(map(shutil.which, TOOLS)) and not subprocess.run(
        ["unshare", "--net", "true"], capture_output=True, check=False).returncode
    if not may:
        print("skipped: needs root, iproute2, nftables and ethtool")
        sys.exit(77)
    unittest.main()
