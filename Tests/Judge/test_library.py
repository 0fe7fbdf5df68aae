"""The Swift library in another package: the test compiles the example with the built modules and runs it."""

import concurrent.futures
import functools
import glob
import json
import os
import platform
import re
import shutil
import subprocess
import unittest
import urllib.error
import urllib.request

import oauth2_server
from oauth2_server import OAuth2Server
from program import BINARY, ROOT, ProgramTest

# The compiler takes a module by a link and by its own path for two modules.
BUILT = os.path.realpath(os.path.dirname(BINARY))
# The build's own cache: compiling the C modules again would take longer than a test.
CACHE = ("-module-cache-path", f"{BUILT}/ModuleCache")
LIBRARIES = ("yaml", "sqlite3", "sodium", "crypto", "curl")
SWIFT = shutil.which("swiftc")
MODULE_MAPS = [flag for path in glob.glob(os.path.join(ROOT, "Sources/C*/module.modulemap"))
               for flag in ("-Xcc", "-fmodule-map-file=" + path)]


@functools.lru_cache(None)
def modules(product):
    """Returns the Swift modules that a product's targets need."""
    # The tests in Swift, which run at the same time, hold the lock of the directory with the build until their end.
    done = subprocess.run(["swift", "package", "--package-path", ROOT, "--ignore-lock", "describe", "--type", "json"],
                          capture_output=True, text=True, timeout=300, check=True)
    package = json.loads(done.stdout)
    targets = {target["name"]: target for target in package["targets"]}
    needed, waiting = set(), {name for target in package["targets"] if product in target.get("product_memberships", [])
                              and target["type"] == "library" for name in [target["name"]]}
    while waiting:
        name = waiting.pop()
        needed.add(name)
        waiting |= set(targets[name].get("target_dependencies", [])) - needed
    return sorted(needed)


def objects_of(module):
    """Returns the object files of the current sources, without outdated ones. A C library has none."""
    table = f"{BUILT}/{module}.build/output-file-map.json"
    if not os.path.exists(table):
        return []
    with open(table, encoding="utf-8") as file:
        return [outputs["object"] for outputs in json.load(file).values() if "object" in outputs]


@unittest.skipUnless(SWIFT, "there is no Swift here")
class Library(ProgramTest):
    """`swift build --package-path Examples` would compile the whole library again for a minute. So the tests resolve
    the manifest and compile the source with the existing modules."""

    def test_the_manifest_finds_the_product(self):
        done = subprocess.run(
            ["swift", "package", "--package-path", os.path.join(ROOT, "Examples"), "--scratch-path", self.folder + "/build",
             "describe", "--type", "json"], capture_output=True, text=True, timeout=300)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn('"Credmgr"', done.stdout)

    def test_the_documentation(self):
        """DocC builds the catalogue without warnings, and each public declaration has documentation."""
        graphs = os.path.join(self.folder, "graphs")
        os.mkdir(graphs)
        for command in (
            ["swift", "symbolgraph-extract", "-module-name", "Credmgr", "-I", f"{BUILT}/Modules", *MODULE_MAPS, "-target",
             f"{platform.machine()}-unknown-linux-gnu", "-minimum-access-level", "public", "-output-dir", graphs, *CACHE],
            ["docc", "convert", os.path.join(ROOT, "Sources/Credmgr/Credmgr.docc"), "--additional-symbol-graph-dir", graphs,
             "--output-path", os.path.join(self.folder, "documentation"), "--warnings-as-errors"],
        ):
            done = subprocess.run(command, capture_output=True, text=True, timeout=300)
            self.assertEqual(done.returncode, 0, done.stderr)
        with open(os.path.join(graphs, "Credmgr.symbols.json"), encoding="utf-8") as file:
            symbols = [symbol for symbol in json.load(file)["symbols"] if "::SYNTHESIZED::" not in symbol["identifier"]["precise"]]
        self.assertLessEqual(len(symbols), 40)
        self.assertEqual([symbol["names"]["title"] for symbol in symbols if "docComment" not in symbol], [])

    def compiled(self, sources, *options):
        program = os.path.join(self.folder, os.path.basename(sources))
        objects = [path for module in modules("Credmgr") for path in objects_of(module)]
        done = subprocess.run(
            ["swiftc", "-parse-as-library", "-swift-version", "6", "-warnings-as-errors", *options, "-I", f"{BUILT}/Modules",
             *MODULE_MAPS, *CACHE, "-use-ld=lld", *glob.glob(os.path.join(ROOT, "Examples/Sources", sources, "*.swift")), *objects,
             *(f"-l{library}" for library in LIBRARIES), "-o", program], capture_output=True, text=True, timeout=300)
        self.assertEqual(done.returncode, 0, done.stderr)
        return program

    def test_a_package_with_the_common_names(self):
        """A package may use our modules' names without the prefix, and the names of our types and functions."""
        with open(os.path.join(ROOT, "Package.swift"), encoding="utf-8") as file:
            names = sorted(set(re.findall(r'\.(?:target|systemLibrary)\(\s*name: "(\w+)"', file.read())) - {"Credmgr"})
        self.assertIn("HTTP", names)
        package = os.path.join(self.folder, "package")
        types = ("HTTPRequest", "HTTPResponse", "HTTPFields", "Token", "Account", "JSONValue", "OAuthError", "Database", "Client")
        for name in names:
            os.makedirs(f"{package}/Sources/{name}")
            with open(f"{package}/Sources/{name}/{name}.swift", "w", encoding="utf-8") as file:
                file.write("".join(f"public struct {kind} {{ public init() {{}} }}\n" for kind in types))
                if name == names[0]:
                    file.write("extension Duration { public static func minutes(_ count: Int) -> Duration { .seconds(60 * count) } }\n")
        os.makedirs(f"{package}/Sources/program")
        with open(f"{package}/Sources/program/Program.swift", "w", encoding="utf-8") as file:
            file.write("import Credmgr\n" + "".join(f"import {name}\n" for name in names) + f"""
@main struct Program {{
  static func main() {{
    print(Credentials.self, Duration.minutes(10), [{", ".join(f"{name}.HTTPRequest()" for name in names)}] as [Any])
  }}
}}
""")
        manifest = ["// swift-tools-version: 6.0", "import PackageDescription", "let package = Package(", '  name: "common",',
                    f'  dependencies: [.package(name: "credmgr", path: "{ROOT}")],', "  targets: ["]
        manifest += [f'    .target(name: "{name}"),' for name in names]
        manifest += ['    .executableTarget(name: "program", dependencies: [.product(name: "Credmgr", package: "credmgr")]),', "  ])"]
        with open(f"{package}/Package.swift", "w", encoding="utf-8") as file:
            file.write("\n".join(manifest) + "\n")

        def succeed(*command):
            done = subprocess.run(command, capture_output=True, text=True, timeout=300, cwd=package)
            self.assertEqual(done.returncode, 0, done.stdout + done.stderr)

        # Resolves the complete graph, in which two targets must not share a name, and compiles one small target.
        succeed("swift", "build", "--target", names[0])
        for name in names:
            # With -wmo, one process makes the module and the object file.
            succeed("swiftc", "-parse-as-library", "-wmo", "-module-name", name, "-emit-module", "-emit-object", "-o", f"{name}.o",
                    *CACHE, f"Sources/{name}/{name}.swift")
        self.compiled(f"{package}/Sources/program", "-I", package, *(f"{package}/{name}.o" for name in names))
        self.assertIn("Credentials", self.run_program(binary=os.path.join(self.folder, "program")).out)

    def test_a_command_line_tool(self):
        program = self.compiled("repositories")
        self.service = self.serve(OAuth2Server())

        def example(path="/resource"):
            return self.run_program("oauth2-public", self.service.base + path, binary=program).out

        self.add("oauth2-public", self.service, oauth2_server.PUBLIC_CLIENT)
        self.assertEqual(example(), 'run "credmgr login oauth2-public"\n')
        self.credmgr("login", "oauth2-public", "--account", "ada")
        out = example()
        self.assertRegex(out, r"^ada may [a-z, ]*read")
        self.assertRegex(out, r"(?m)^200 .*ada")
        # Of two tasks, one must refresh, because only the access token was revoked.
        self.service.kill_access()
        self.assertRegex(example(), r"(?m)^200 .*ada")
        self.assertEqual(self.service.counts["granted:refresh_token"], 1)
        # A host that the descriptor does not name gets no token.
        self.assertIn("does not name the host", self.run_program("oauth2-public", "https://evil.example/", binary=program).out)
        self.assertIn("library for repositories", self.credmgr("log").out)

    def test_a_server_whose_tokens_rotate(self):
        """A request waits only for the refresh of its own account."""
        program = self.compiled("gateway")
        service = self.serve(OAuth2Server(refresh_delay=600))
        self.add("oauth2-public", service, oauth2_server.PUBLIC_CLIENT)
        for account in ("ada", "ben"):
            self.credmgr("login", "oauth2-public", "--account", account)
        service.kill_access()  # ben's
        server = self.start("oauth2-public", service.base + "/resource", binary=program)
        address = server.wait_for(r"(http://\S+)\n").group(1)

        def ask(account):
            try:
                with urllib.request.urlopen(f"{address}/{account}", timeout=60) as response:
                    return response.status
            except urllib.error.HTTPError as error:
                return error.read().decode()

        with concurrent.futures.ThreadPoolExecutor(64) as pool:
            waiting = [pool.submit(ask, "ben") for _ in range(16)]
            self.wait_until(lambda: service.counts["token:refresh_token"] == 1)
            self.assertEqual(set(pool.map(ask, ["ada"] * 200)), {200})
            self.assertFalse(any(answer.done() for answer in waiting))
            service.hurry.set()
            self.assertEqual({answer.result() for answer in waiting}, {200})
        self.assertEqual(service.counts["granted:refresh_token"], 1)
