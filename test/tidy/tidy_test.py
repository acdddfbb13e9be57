"""Tests of the checks: each finds the fault it is for, and lets the innocent pass."""

import unittest

import calls
import documents
import edges
import layout
import messages
import tidy
import tree


def found(check, files):
    return list(check(files))


HEADER = "// What it is.\n#ifndef {0}\n#define {0}\n\n#endif  // {0}\n"


class Edges(unittest.TestCase):
    TREE = {
        "lib/check.h": "",
        "lib/include/optireduce/status.h": "",
        "transport/packet_io.h": "",
        "transport/ubt/sender.h": "",
        "transport/udp/port.h": "",
        "transport/sim/world.h": "",
        "collectives/engine.h": "",
        "collectives/include/optireduce/communicator.h": "",
        "test/support/fake.h": "",
    }

    def faults(self, path, include):
        return found(edges.check_edges, {**self.TREE, path: f"#include {include}\n"})

    def test_forbidden(self):
        for path, include in [
            ("lib/check.cc", '"transport/packet_io.h"'),
            ("transport/ubt/sender.cc", '"transport/packet_io.h"'),
            ("transport/ubt/sender.cc", '"transport/udp/port.h"'),
            ("transport/udp/port.cc", '"transport/ubt/sender.h"'),
            ("transport/udp/port.cc", '"transport/sim/world.h"'),
            ("transport/ubt/sender.cc", '"collectives/engine.h"'),
            ("collectives/engine.cc", '"transport/udp/port.h"'),
            ("collectives/engine.cc", '"transport/sim/world.h"'),
            ("examples/bench/main.cc", '"collectives/engine.h"'),
            ("examples/bench/main.cc", '"lib/check.h"'),
            ("collectives/engine.cc", '"test/support/fake.h"'),
            ("lib/include/optireduce/time.h", '"lib/check.h"'),
            ("lib/check.cc", '"check.h"'),
            ("stray/file.cc", '"lib/check.h"'),
            ("transport/ubt/sender.cc", "<sys/socket.h>"),
            ("collectives/engine.cc", "<boost/asio.hpp>"),
            ("lib/config.cc", "<gflags/gflags.h>"),
            ("transport/udp/port.cc", "<rte_ethdev.h>"),
        ]:
            with self.subTest(path=path, include=include):
                self.assertEqual(len(self.faults(path, include)), 1)

    def test_allowed(self):
        for path, include in [
            ("transport/ubt/sender.cc", '"lib/check.h"'),
            ("transport/ubt/sender.cc", '"optireduce/status.h"'),
            ("transport/udp/port.cc", '"transport/packet_io.h"'),
            ("transport/udp/port.cc", "<sys/socket.h>"),
            ("collectives/engine.cc", '"transport/ubt/sender.h"'),
            ("examples/bench/main.cc", '"optireduce/communicator.h"'),
            ("examples/sim/swarm.cc", '"transport/sim/world.h"'),
            ("test/unit/udp/port_test.cc", '"transport/udp/port.h"'),
        ]:
            with self.subTest(path=path, include=include):
                self.assertEqual(self.faults(path, include), [])

    def test_cycles(self):
        files = {"lib/a.h": '#include "lib/b.h"\n', "lib/b.h": '#include "lib/a.h"\n'}
        self.assertEqual(len(found(edges.check_cycles, files)), 1)
        self.assertEqual(found(edges.check_cycles, {"lib/a.h": '#include "lib/b.h"\n',
                                                    "lib/b.h": ""}), [])
        self.assertEqual(edges.find_cycle({"a": {"b"}, "b": {"c"}, "c": {"b"}}), ["b", "c", "b"])

    def test_cmake(self):
        bad = {"transport/ubt/CMakeLists.txt": "optireduce_module(ubt DEPENDS base wire udp)\n"}
        good = {"transport/ubt/CMakeLists.txt": "optireduce_module(ubt DEPENDS base wire LINK x)\n"}
        self.assertEqual(len(found(edges.check_cmake, bad)), 1)
        self.assertEqual(found(edges.check_cmake, good), [])


class Calls(unittest.TestCase):
    def test_banned(self):
        for path, line in [
            ("transport/ubt/a.cc", "auto t = std::chrono::steady_clock::now();"),
            ("collectives/a.cc", "clock_gettime(CLOCK_MONOTONIC, &t);"),
            ("lib/a.cc", "time_t t = time(nullptr);"),
            ("transport/control/a.cc", "auto t = std::chrono::system_clock::now();"),
            ("examples/bench/a.cc", "gettimeofday(&t, nullptr);"),
            ("transport/wire/a.cc", "std::mt19937 stream(1);"),
            ("transport/sim/a.cc", "int x = rand();"),
            ("transport/control/a.cc", 'const char* x = std::getenv("X");'),
            ("collectives/a.cc", "rte_eal_init(argc, argv);"),
            ("transport/ubt/a.cc", "auto* p = new Slot;"),
            ("transport/ubt/a.cc", "void* p = malloc(4);"),
            ("transport/ubt/a.cc", "std::mutex mutex_;"),
            ("transport/ubt/a.cc", "int fd = socket(AF_INET, SOCK_DGRAM, 0);"),
            ("transport/udp/a.cc", 'std::cout << "x";'),
            ("collectives/a.cc", "throw 1;"),
            ("collectives/a.cc", "std::exit(1);"),
        ]:
            with self.subTest(path=path, line=line):
                self.assertEqual(len(found(calls.check_calls, {path: line})), 1)

    def test_innocent(self):
        for path, line in [
            ("transport/ubt/a.cc", "// steady_clock::now() is read by the driver; a new slot"),
            ("transport/ubt/a.cc", 'Log("rand() time(nullptr)");'),
            ("transport/udp/a.cc", "auto t = std::chrono::steady_clock::now();"),
            ("collectives/a.cc", "report.exit(); engine.bind(1); Duration op_time(0);"),
            ("collectives/a.cc", "auto* p = new Slot;"),
            ("transport/ubt/a.cc", "std::snprintf(text, 4, x); operand(1);"),
        ]:
            with self.subTest(path=path, line=line):
                self.assertEqual(found(calls.check_calls, {path: line}), [])

    def test_flags(self):
        flag = "DEFINE_int32(np, 1, x);"
        self.assertEqual(len(found(calls.check_flags, {"lib/a.cc": flag})), 1)
        self.assertEqual(found(calls.check_flags, {"examples/bench/a.cc": flag}), [])

    def test_stale_exception(self):
        calls.EXCEPTIONS[("clock", "lib/gone.cc")] = "for this test"
        try:
            self.assertEqual(len(found(calls.check_exceptions, {})), len(calls.EXCEPTIONS))
        finally:
            del calls.EXCEPTIONS[("clock", "lib/gone.cc")]


class Layout(unittest.TestCase):
    def test_sizes(self):
        for text in ["x\n" * 600, "x" * 101 + "\n", "x \n", "\tx\n", "x"]:
            self.assertEqual(len(found(layout.check_sizes, {"lib/a.cc": text})), 1)
        self.assertEqual(found(layout.check_sizes, {"lib/a.cc": "x\n" * 599}), [])
        self.assertEqual(found(layout.check_sizes, {"lib/a.cc": "§" * 100 + "\n"}), [])

    def test_long_functions(self):
        body = "  x;\n" * 70
        for head in [
            "void F() {\n",
            "int Class::F(int a,\n             int b) const noexcept {\n",
            "Class::Class(int a) : a_(a), b_{1} {\n",
            "namespace n {\nclass C {\n public:\n  void F() {\n",
            "template <typename T>\nauto F(T x) -> int {\n",
            "struct S F(int x) {\n",
            "TEST(A, B) {\n",
            "bool operator==(const A& a, const B& b) {\n",
        ]:
            text = head + body + "}\n" * head.count("{\n")
            with self.subTest(head=head):
                self.assertEqual(len(found(layout.check_functions, {"lib/a.cc": text})), 1)

    def test_short_functions(self):
        members = "  void F() { x; }\n  int y_{3};\n" * 50
        table = "constexpr Row kRows[] = {\n" + "  {1, Make(2), '{'},\n" * 90 + "};\n"
        raw = 'const char* kText = R"(\n' + "void F() {\n" * 90 + ')";\n'
        for text in ["class C {\n" + members + "};\n", table, raw,
                     "namespace {\n" + "void F() {\n}\n" * 80 + "}\n",
                     "enum class E : int {\n" + "  kA = F(1),\n" * 90 + "};\n",
                     "#define M(x) {\n" + "int a;\n" * 90]:
            with self.subTest(text=text[:30]):
                self.assertEqual(found(layout.check_functions, {"lib/a.cc": text}), [])

    def test_guards(self):
        good = {"lib/a_b.h": HEADER.format("OPTIREDUCE_LIB_A_B_H_"),
                "lib/include/optireduce/time.h": HEADER.format("OPTIREDUCE_TIME_H_")}
        self.assertEqual(found(layout.check_guards, good), [])
        bad = {"lib/a.h": HEADER.format("LIB_A_H_"), "lib/b.h": "#pragma once\n"}
        self.assertGreaterEqual(len(found(layout.check_guards, bad)), 2)

    def test_include_order(self):
        bad = {"lib/a.cc": "#include <b>\n#include <a>\n"}
        good = {"lib/a.cc": '#include "lib/z.h"\n\n#include <a>\n#include <b>\n'}
        self.assertEqual(len(found(layout.check_include_order, bad)), 1)
        self.assertEqual(found(layout.check_include_order, good), [])

    def test_words(self):
        for line in ["// TO" "DO: later", "// see /wo" "rk/main", "// a chu" "nk of it",
                     "std::byte* buf" "fer = nullptr;", "// not imple" "mented"]:
            with self.subTest(line=line):
                self.assertEqual(len(found(layout.check_words, {"lib/a.cc": line})), 1)
        for line in ["boost::asio::buf" "fer(data)", "// the socket buf" "fer of the kernel",
                     "int receive_buf" "fer_bytes;", "framework/x"]:
            with self.subTest(line=line):
                self.assertEqual(found(layout.check_words, {"lib/a.cc": line}), [])


class Messages(unittest.TestCase):
    CODE = 'Status s("no room for " +\n  Name(x) + ", waits "\n  "for \\"all\\"");'

    def faults(self, page):
        return found(messages.check_messages, {"lib/a.cc": self.CODE, messages.PAGE: page})

    def test_headings(self):
        self.assertEqual(self.faults("### `room for `\ntext\n\n### `, waits for `\n"), [])
        self.assertEqual(len(self.faults("### `room for us`\n")), 1)
        self.assertEqual(len(self.faults("### Name\n")), 1)
        self.assertEqual(len(self.faults("### room for\n")), 1)
        self.assertEqual(len(self.faults("text\n")), 1)


class Documents(unittest.TestCase):
    SUITES = {"test/unit/lib/a_test.cc": "TEST(Suite, Does) {}\nTEST_P(Other,\n  DoesToo) {}\n",
              "test/fuzz/wire.cc": ""}

    def faults(self, page):
        return found(documents.check_cases, {**self.SUITES, documents.CASES: page})

    def test_cases(self):
        good = ("| A1 | all is well | `Suite.Does`, `Other.DoesToo` |\n"
                "| A2 | x | `test/fuzz/wire.cc` |\n")
        self.assertEqual(self.faults(good), [])
        for page in ["| A1 | x | `Suite.Gone` |\n",
                     "| A1 | x | `Suite.Does` and `Other.Does` |\n",
                     "| A1 | x | `test/fuzz/gone.cc` |\n",
                     "| A1 | x |  |\n",
                     "| A1 | x | why |\n| A1 | y | why |\n",
                     "| A1 | x | why |\n| A3 | y | why |\n",
                     "no row\n"]:
            with self.subTest(page=page):
                self.assertEqual(len(self.faults(page)), 1)

    def test_links(self):
        files = {"docs/a.md": "[b](sub/b.md#part) [c](https://x.org) [up](../README.md)",
                 "docs/sub/b.md": "[gone](gone.md)", "README.md": "[d](docs)"}
        self.assertEqual(found(documents.check_links, files),
                         ["docs/sub/b.md:1: the link gone.md leads nowhere"])


class Whole(unittest.TestCase):
    def test_code_only_keeps_lines(self):
        text = "int a = 1'000'000; // x\n/* y\n z */ char c = '\\''; auto s = \"//\";\n"
        code = tree.code_only(text)
        self.assertEqual(code.count("\n"), text.count("\n"))
        self.assertIn("1'000'000", code)
        self.assertNotIn("z", code)
        self.assertNotIn("//", code)

    def test_unknown_check_is_refused(self):
        self.assertEqual(tidy.main([".", "no_such_check"]), 2)


if __name__ == "__main__":
    unittest.main()
