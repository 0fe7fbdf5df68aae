"""One login in one browser repairs an account, whichever program asks for it."""

import os
import signal
import subprocess
import sys
import unittest

import oauth2_server
from browser import TIMEOUT
from git_server import GitServer
from oauth2_server import OAuth2Server
from program import ADA, BINARY, DESCRIPTORS, DONE, LOGIN_NEEDED, REFUSED, USAGE, ProgramTest, brief, is_test_build

PROCESSES = int(os.environ.get("CREDMGR_PROCESSES", 16))
SOMEBODY = {"GIT_TERMINAL_PROMPT": "1"}


def children(environment):
    """Returns the processes of credmgr with this home."""
    for number in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{number}/environ", "rb") as file:
                if f"CREDMGR_HOME={environment['CREDMGR_HOME']}\0".encode() not in file.read():
                    continue
            with open(f"/proc/{number}/comm", encoding="utf-8") as file:
                if file.read().startswith("credmgr"):
                    yield int(number)
        except OSError:
            continue


def state(process):
    with open(f"/proc/{process}/stat", encoding="utf-8") as file:
        return file.read().rpartition(")")[2].split()[0]


class Again(ProgramTest):
    def ready(self, name="git-host", **options):
        self.service = self.serve(OAuth2Server(**options))
        self.provider = self.add(name, self.service, oauth2_server.PUBLIC_CLIENT, git_port=8418)
        self.question = "protocol=http\nhost=127.0.0.1:8418\n"

    def get(self, more="", status=DONE, **environment):
        outcome = self.run_program("git-credential", "get", stdin=self.question + more,
                                   environment={**SOMEBODY, **environment})
        self.assertEqual(outcome.status, status, outcome.err)
        return outcome

    def kill_tokens(self):
        """Revokes everything at the provider; the token expires a little later."""
        self.service.revoke(self.service.tokens[-1], whole_family=True)

    def hinted(self, outcome):
        """Returns the login command exactly as in the hint."""
        line = next(line for line in outcome.err.splitlines() if 'run "credmgr login' in line)
        return line.split('"')[1].split()[1:]

    @property
    def pages(self):
        return len(self.service.requests("/authorize", "GET"))


class Repair(Again):
    def test_one_login_repairs_a_dead_refresh_token(self):
        for name in ("git-host", "git-host-named"):
            for repair in ("git", "hint", "plain"):
                with self.subTest(name=name, repair=repair):
                    self.new_home()
                    self.ready(name, lifetime=brief())
                    self.credmgr("login", self.provider)
                    self.kill_tokens()
                    self.expire()
                    failed = self.credmgr("token", self.provider, status=LOGIN_NEEDED)
                    for arguments in (["header"], ["exec"], ["kubectl-credential"]):
                        command = ["--", "true"] if arguments == ["exec"] else []
                        again = self.credmgr(*arguments, self.provider, *command, status=LOGIN_NEEDED)
                        self.assertEqual(self.hinted(again), self.hinted(failed))
                    if repair == "git":
                        self.get()
                    else:
                        self.credmgr(*(self.hinted(failed) if repair == "hint" else ["login", self.provider]))
                    self.assertEqual(self.pages, 2)
                    self.assertTrue(self.service.accepts(self.credmgr("token", self.provider).line))
                    self.assertEqual(self.credmgr("status", self.provider).out.count("(default)"), 1)

    def test_status_doctor_and_token_agree_about_a_refused_refresh(self):
        self.ready(lifetime=600)
        self.credmgr("login", self.provider)
        self.kill_tokens()
        self.credmgr("token", self.provider, "--refresh", status=LOGIN_NEEDED)
        outcome = self.credmgr("token", self.provider)
        self.assertRegex(outcome.err, r"warning: cannot refresh the .* token for .*:\n  .*\n.*hint: run \"credmgr login")
        self.assertIn("refused by the provider", self.credmgr("status").out)
        self.assertIn('"state": "refused"', self.credmgr("status", "--json").out)
        self.assertIn("refuses to refresh", self.run_program("doctor").out)
        self.later(601)
        self.credmgr("token", self.provider, status=LOGIN_NEEDED)
        self.assertIn("log in again", self.credmgr("status").out)
        self.assertIn("cannot be refreshed", self.run_program("doctor").out)


class Names(Again):
    def test_a_user_name_that_is_not_an_account(self):
        self.ready()
        first = self.get("username=git\n")
        self.assertIn("username=judge\n", first.out, "the name that the server wants with each token")
        for _ in range(2):
            self.assertEqual(self.get("username=oauth2\n").err, "")
        self.assertEqual(self.pages, 1)
        # With two accounts, the user must choose one.
        self.credmgr("login", self.provider, "--account", "work")
        outcome = self.get("username=git\n", status=LOGIN_NEEDED)
        self.assertEqual(outcome.out, "quit=1\n")
        self.assertIn('has no account "git"', outcome.err)
        self.credmgr("use", self.provider, "work", "--for", "http://127.0.0.1:8418")
        self.assertIn(self.credmgr("token", self.provider, "--account", "work").line, self.get("username=git\n").out)
        self.assertEqual(self.pages, 2)

    def test_a_login_of_another_user_than_in_the_url(self):
        """The token is sent with the account's name, so the account cannot be another one than the URL's."""
        with open(os.path.join(DESCRIPTORS, "git-host-named.yaml"), encoding="utf-8") as file:
            text = file.read().replace("git-host-named", "own")
        name = self.file("own.yaml", text.replace("username: judge", 'username: "{account}"'))
        self.ready()
        self.credmgr("remove-provider", self.provider)
        self.credmgr("add-provider", name, "--client-id", oauth2_server.PUBLIC_CLIENT, "--set",
                     f"port={self.service.port}", "--set", "git_port=8418")
        for _ in range(3):
            outcome = self.get("username=eve\n", status=LOGIN_NEEDED)
            self.assertEqual(outcome.out, "quit=1\n")
            self.assertIn('"eve"', outcome.err)
        self.assertEqual(self.pages, 1)
        self.assertIn("username=ada\n", self.get("username=ada\n").out)
        self.assertIn("username=ada\n", self.get().out)

    def test_the_environment_names_an_account_of_another_provider(self):
        self.ready()
        self.credmgr("login", self.provider)
        outcome = self.get(status=LOGIN_NEEDED, CREDMGR_ACCOUNT="work")
        self.assertEqual(outcome.out, "quit=1\n")
        self.assertIn('CREDMGR_ACCOUNT names "work"', outcome.err)
        self.assertNotIn("export", outcome.err)
        other = self.add("git-host-named", self.service, oauth2_server.PUBLIC_CLIENT, git_port=8419)
        self.credmgr("login", other, "--account", "work")
        outcome = self.get(status=LOGIN_NEEDED, CREDMGR_ACCOUNT="work")
        self.assertIn(f'run "export CREDMGR_ACCOUNT={other}=work"', outcome.err)
        self.assertIn("password=", self.get(CREDMGR_ACCOUNT=f"{other}=work").out)
        self.get(status=LOGIN_NEEDED, CREDMGR_ACCOUNT=f"other=ada,{self.provider}=work")
        self.assertEqual(self.pages, 2)

    def test_an_error_in_the_rules_ends_the_question(self):
        self.ready()
        self.credmgr("login", self.provider)
        rules = os.path.join(self.environment["CREDMGR_HOME"], "config", "accounts.yaml")
        self.file(rules, "rules: [\n")
        outcome = self.get(status=USAGE)
        self.assertEqual(outcome.out, "quit=1\n")
        self.assertIn(rules, outcome.err)

    def test_a_rule_names_an_account_that_is_not_logged_in(self):
        self.ready()
        rules = os.path.join(self.environment["CREDMGR_HOME"], "config", "accounts.yaml")
        rule = f"{{ provider: {self.provider}, account: work, for: http://127.0.0.1:8418 }}"
        self.file(rules, f"rules:\n  - {rule}\n")
        outcome = self.get(status=LOGIN_NEEDED, GIT_TERMINAL_PROMPT="0")
        self.assertIn(f'run "credmgr login {self.provider} --account work"', outcome.err)
        self.assertEqual(self.pages, 0)

    def test_a_dead_account_is_not_answered_with_another_users_password(self):
        self.ready(lifetime=brief())
        self.credmgr("login", self.provider)
        self.run_program("git-credential", "store", stdin=self.question + "username=eve\npassword=hers\n")
        self.kill_tokens()
        self.expire()
        self.assertEqual(self.get(status=LOGIN_NEEDED, GIT_TERMINAL_PROMPT="0").out, "")
        self.assertIn("password=hers", self.get("username=eve\n", GIT_TERMINAL_PROMPT="0").out)


class Together(Again):
    @unittest.skipUnless(is_test_build(), "this program was built for use, and has no fault points")
    def test_a_waiting_process_takes_the_token_of_the_login(self):
        for name in ("git-host", "git-host-named"):
            with self.subTest(name=name):
                self.new_home()
                self.ready(name)
                question = self.file("question", self.question)
                begun = os.path.join(self.folder, "begun-" + name)
                slow = self.file("slow", f"#!/bin/sh\nuntil [ -e {begun} ]; do sleep 0.1; done\n"
                                 f'exec {self.environment["BROWSER"]} "$1"\n', 0o700)

                def helper(**environment):
                    with open(question, "rb") as file:
                        return subprocess.Popen(
                            [BINARY, "git-credential", "get"], stdin=file, stdout=subprocess.PIPE,
                            stderr=subprocess.PIPE, text=True, env={**self.environment, **SOMEBODY, **environment})

                first = helper(BROWSER=slow)
                # These processes have already found no valid account.
                late = [helper(CREDMGR_FAULT="git.login=stop") for _ in range(PROCESSES)]
                self.wait_until(lambda: all(state(process.pid) == "T" for process in late))
                self.file("begun-" + name, "")
                out, err = first.communicate(timeout=TIMEOUT)
                self.assertEqual(first.returncode, DONE, err)
                for process in late:
                    process.send_signal(signal.SIGCONT)
                for process in late:
                    ours, err = process.communicate(timeout=TIMEOUT)
                    self.errors.append(err)
                    self.assertEqual((process.returncode, ours), (DONE, out), err)
                self.assertEqual(self.pages, 1)
                # A late process sends nothing that the provider could refuse.
                self.assertEqual(len(self.service.requests("/token")), 1)

    def after(self, name, command):
        """Returns a browser that runs a command as soon as the file `name` exists."""
        path = os.path.join(self.folder, name)
        return self.file("browser-" + name, f"#!/bin/sh\nuntil [ -e {path} ]; do sleep 0.1; done\n{command}\n", 0o700)

    def helper(self, **environment):
        """Starts git's helper, which reads its question to the end."""
        helper = self.start("git-credential", "get", environment={**SOMEBODY, **environment})
        helper.process.stdin.write(self.question)
        helper.process.stdin.close()
        helper.process.stdin = None
        return helper

    def test_git_waits_for_the_users_login(self):
        for name in ("git-host", "git-host-named"):
            with self.subTest(name=name):
                self.new_home()
                self.ready(name, lifetime=brief())
                self.credmgr("login", self.provider)
                self.kill_tokens()
                self.expire()
                self.credmgr("token", self.provider, status=LOGIN_NEEDED)
                browser = self.after("agreed-" + name, f'exec {self.environment["BROWSER"]} "$1"')
                login = self.start("login", self.provider, environment={"BROWSER": browser})
                login.wait_for("opening the browser")
                helper = self.helper()
                helper.wait_for("waiting for another login")
                self.file("agreed-" + name, "")
                logged_in, outcome = login.end(), helper.end()
                self.assertEqual((logged_in.status, outcome.status), (DONE, DONE), logged_in.err + outcome.err)
                self.assertNotIn("already logged in", logged_in.err)
                self.assertEqual(self.pages, 2)
                self.assertIn(self.credmgr("token", self.provider).line, outcome.out)
                self.assertEqual(self.credmgr("status", "--json").out.count('"account"'), 1)

    @unittest.skipUnless(is_test_build(), "this program was built for use, and has no fault points")
    def test_logins_that_begin_together_share_a_browser(self):
        """The logins to a name and without a name have different locks, and both have looked for the other."""
        stop = {"CREDMGR_FAULT": "login.begins=stop"}
        for name, is_users in (("git-host", True), ("git-host-named", True), ("git-host-named", False)):
            with self.subTest(name=name, is_users=is_users):
                self.new_home()
                self.ready(name, lifetime=brief())
                if is_users:
                    self.credmgr("login", self.provider)
                    self.kill_tokens()
                    self.expire()
                    self.credmgr("token", self.provider, status=LOGIN_NEEDED)
                    both = [self.start("login", self.provider, environment=stop), self.helper(**stop)]
                else:
                    both = [self.helper(**stop), self.helper(**stop, CREDMGR_ACCOUNT=f"{self.provider}=ada")]
                before = self.pages
                self.wait_until(lambda: all(state(each.process.pid) == "T" for each in both))
                for each in both:
                    each.process.send_signal(signal.SIGCONT)
                ended = [each.end() for each in both]
                self.assertEqual([outcome.status for outcome in ended], [DONE] * 2, [outcome.err for outcome in ended])
                self.assertEqual(self.pages, before + 1)
                self.assertEqual(self.credmgr("status", "--json").out.count('"account"'), 1)

    def test_a_user_declines_once(self):
        self.ready()
        deny = ("import sys; sys.path.insert(0, sys.argv[1]); "
                "from browser import Browser; Browser(decision='deny').open(sys.argv[2])")
        here = os.path.dirname(os.path.abspath(__file__))
        browser = self.after("denied", f'exec {sys.executable} -c "{deny}" {here} "$1"')
        helpers = []
        for number in range(5):
            helper = self.helper(BROWSER=browser)
            helper.wait_for("waiting for another login" if number else "opening the browser")
            helpers.append(helper)
        self.file("denied", "")
        ended = [helper.end() for helper in helpers]
        self.assertEqual({outcome.status for outcome in ended}, {REFUSED})
        self.assertEqual(len({outcome.err[outcome.err.index("error:"):] for outcome in ended}), 1)
        self.assertEqual(self.pages, 1)

    def test_a_login_ends_with_its_git_process(self):
        self.ready()
        served = self.enterContext(GitServer(self.folder, lambda *_: False))
        self.add("git-host", self.service, oauth2_server.PUBLIC_CLIENT, git_port=served.port)
        never = self.file("never", "#!/bin/sh\nexec sleep 60\n", 0o700)
        git = self.start("-c", f"credential.helper=!'{BINARY}' git-credential", "clone", f"{served.base}/demo.git",
                         os.path.join(self.folder, "copy"), binary="/usr/bin/git", stdin=False,
                         environment={**SOMEBODY, "BROWSER": never})
        git.wait_for("waiting for the browser|opening the browser")
        self.assertNotEqual(list(children(self.environment)), [])
        # Kills only git and not its group, like an editor that gives up waiting.
        git.process.kill()
        self.wait_until(lambda: not list(children(self.environment)))
        git.end()
        # No process holds the lock, and nothing is reported.
        self.credmgr("login", "git-host", "--account", ADA)
        self.assertNotIn("interrupted", self.credmgr("status").err)
