"""The protocol between git and its helpers (git-credential(1)), with and without git."""

import os
import re

import oauth2_server
from oauth2_server import OAuth2Server
from program import ADA, BINARY, USAGE, ProgramTest, brief
from test_git import GIT, GitTest

FORGE = """\
provider: forge
grant: authorization_code
endpoints: { authorization: "https://forge.example/authorize", token: "https://forge.example/token" }
git: { hosts: [forge.example], username: token-user }
"""


class ProtocolTest(ProgramTest):
    def ask(self, operation, *lines, status=0, arguments=(), **options):
        outcome = self.run_program("git-credential", *arguments, operation, stdin="".join(f"{line}\n" for line in lines) + "\n",
                                   **options)
        self.assertEqual(outcome.status, status, outcome.err)
        answer = {}
        for line in outcome.out.splitlines():
            name, _, value = line.partition("=")
            answer.setdefault(name, []).append(value)
        return answer

    def get(self, *lines, **options):
        """Returns the user name and password of the answer; `None` if missing."""
        answer = self.ask("get", *lines, **options)
        if not answer:
            return None
        return answer.get("username", [None])[0], answer.get("password", answer.get("credential"))[0]

    def log_in(self, account, token):
        if not os.path.exists(os.path.join(self.homes[-1], "config/providers/forge.yaml")):
            self.credmgr("add-provider", self.file("forge.yaml", FORGE), "--client-id", "client")
        self.credmgr("login", "forge", "--account", account, "--with-token", stdin=token + "\n")


class Protocol(ProtocolTest):
    """The requirements of git's own helper tests (t0303), and more."""

    # Hosts that no provider claims.
    def test_a_stored_credential_returns_for_its_host_only(self):
        https = ("protocol=https", "host=example.com")
        self.assertIsNone(self.get(*https))
        self.ask("store", *https, "username=ada", "password=word one=two")
        self.assertEqual(self.get(*https), ("ada", "word one=two"))
        for other in (("protocol=http", "host=example.com"), ("protocol=https", "host=other.example"),
                      ("protocol=https", "host=example.com:8443"), (*https, "username=grace"), (*https, "path=a.git"),
                      (*https, "username=")):
            self.assertIsNone(self.get(*other), other)
        self.assertEqual(self.get("protocol=https", "host=EXAMPLE.com:443"), ("ada", "word one=two"))
        self.ask("store", "protocol=smtp", "host=mail.example:587", "username=ada", "password=post")
        self.assertEqual(self.get("protocol=smtp", "host=mail.example:587"), ("ada", "post"))

    def test_several_users_and_paths(self):
        host = ("protocol=https", "host=example.com")
        self.ask("store", *host, "username=ada", "password=1")
        self.ask("store", *host, "username=grace", "password=2")
        self.ask("store", *host, "path=a/b.git", "username=ada", "password=3")
        self.assertEqual(self.get(*host, "username=ada", "path=a/b.git"), ("ada", "3"))
        self.assertEqual(self.get(*host, "username=grace"), ("grace", "2"))
        self.assertIsNone(self.get(*host, "path=a"))
        self.ask("store", *host, "username=grace", "password=newer")
        self.assertEqual(self.get(*host, "username=grace"), ("grace", "newer"))
        self.assertEqual(self.get(*host), ("grace", "newer"), "the one that was stored last")

    def test_erase_removes_only_matching_credentials(self):
        host = ("protocol=https", "host=example.com")
        for user, password in (("ada", "1"), ("grace", "2")):
            self.ask("store", *host, f"username={user}", f"password={password}")
        self.ask("erase", *host, "username=ada", "password=another")
        self.assertEqual(self.get(*host, "username=ada"), ("ada", "1"), "a newer password is not erased for an older one")
        self.ask("erase", *host, "username=ada", "password=1")
        self.assertIsNone(self.get(*host, "username=ada"))
        self.assertEqual(self.get(*host, "username=grace"), ("grace", "2"))
        self.ask("store", *host, "path=p", "username=ada", "password=3")
        self.ask("erase", *host)
        self.assertIsNone(self.get(*host))

    def test_an_empty_user_name_counts_as_a_user_name(self):
        host = ("protocol=https", "host=sso.example")
        self.ask("store", *host, "username=", "password=")
        self.assertEqual(self.get(*host), ("", ""))
        self.ask("store", *host, "password=x")
        self.assertEqual(self.get(*host), ("", ""), "without a user name nothing is stored")

    def test_expiry_and_refresh_token_are_kept(self):
        host = ("protocol=https", "host=example.com")
        self.ask("store", *host, "username=ada", "password=1", "password_expiry_utc=9999999999", "oauth_refresh_token=more")
        answer = self.ask("get", *host)
        self.assertEqual(answer["password_expiry_utc"], ["9999999999"])
        self.assertEqual(answer["oauth_refresh_token"], ["more"])
        self.ask("store", *host, "username=old", "password=1", "password_expiry_utc=1000000000")
        self.assertIsNone(self.get(*host, "username=old"))
        self.assertNotIn("username=old", self.credmgr("log", "--json").out)

    def test_a_lifetime(self):
        host = ("protocol=https", "host=example.com")
        self.ask("store", *host, "username=ada", "password=1", arguments=(f"--timeout={brief()}",))
        self.assertEqual(self.get(*host), ("ada", "1"))
        self.expire()
        self.assertIsNone(self.get(*host))
        self.ask("store", *host, "username=ada", "password=1", arguments=("--timeout", "5m"))
        self.assertEqual(self.get(*host), ("ada", "1"))
        self.ask("store", *host, "username=ada", "password=1", arguments=("--timeout", "soon"), status=USAGE)

    def test_schemes(self):
        host = ("protocol=https", "host=example.com")
        knows = ("capability[]=authtype", *host)
        self.ask("store", *knows, "authtype=Bearer", "credential=t-1", "ephemeral=1")
        self.assertIsNone(self.get(*knows), "what is of use only now is not kept")
        self.ask("store", *knows, "authtype=Bearer", "credential=t-1")
        answer = self.ask("get", *knows)
        self.assertEqual((answer["authtype"], answer["credential"]), (["Bearer"], ["t-1"]))
        self.assertEqual(answer["capability[]"], ["authtype"])
        self.assertNotIn("username", answer)
        self.assertIsNone(self.get(*host), "a git that does not know schemes gets none")
        self.ask("erase", *knows, "authtype=Bearer", "credential=t-0")
        self.assertEqual(self.get(*knows), (None, "t-1"))
        self.ask("erase", *knows, "authtype=Bearer", "credential=t-1")
        self.assertIsNone(self.get(*knows))

    def test_stored_passwords_are_not_readable(self):
        self.ask("store", "protocol=https", "host=example.com", "username=ada.lovelace@example.org", "password=sesame-1")
        self.assert_nowhere_in(self.homes[-1], {"ada.lovelace@example.org", "sesame-1", "example.com"})

    # A provider's hosts.
    def test_a_providers_host(self):
        self.log_in("octo", "t-octo")
        host = ("protocol=https", "host=forge.example")
        self.assertEqual(self.get(*host), ("token-user", "t-octo"))
        for approved in (("username=token-user", "password=t-octo"), ("username=octo", "password=stale"),
                         ("username=token-user", "password=stale")):
            self.ask("store", *host, *approved)
            self.assertEqual(self.get(*host), ("token-user", "t-octo"))
            self.assertEqual(self.get(*host, "username=octo"), ("token-user", "t-octo"))
        self.ask("store", *host, "username=other", "password=p")
        self.assertEqual(self.get(*host, "username=other"), ("other", "p"), "nobody's account is kept like any other")
        self.assertEqual(self.get(*host), ("token-user", "t-octo"))
        self.ask("erase", *host)
        self.ask("erase", *host, "username=octo", "password=older")
        self.assertEqual(self.get(*host), ("token-user", "t-octo"), "only what was refused is bad")
        self.ask("erase", *host, "username=octo", "password=t-octo")
        self.assertEqual(self.get(*host, status=3), None)

    def test_capabilities_of_a_providers_answer(self):
        self.log_in("octo", "t-octo")
        host = ("protocol=https", "host=forge.example")
        self.assertEqual(set(self.ask("get", *host)), {"username", "password"})
        answer = self.ask("get", "capability[]=authtype", "capability[]=state", "capability[]=later", *host)
        self.assertEqual(answer["capability[]"], ["authtype", "state"])
        self.assertEqual(answer["ephemeral"], ["1"])
        self.assertTrue(answer["state[]"][0].startswith("credmgr."))
        self.assertNotIn("continue", answer, "there is nothing to refresh it with")
        answer = self.ask("get", "capability[]=authtype", *host, "wwwauth[]=Bearer realm=x")
        self.assertEqual((answer["authtype"], answer["credential"]), (["Bearer"], ["t-octo"]))
        answer = self.ask("get", "capability[]=authtype", *host, "wwwauth[]=Bearer realm=x", "wwwauth[]=Basic")
        self.assertEqual(answer["password"], ["t-octo"])
        # A state that is not ours, or that belongs to another token, has no effect.
        for state in ("other.helper=1", "credmgr.given=0 forge octo", "credmgr.given=x", "credmgr.given=1 other octo"):
            self.assertEqual(self.get("capability[]=state", f"state[]={state}", *host), ("token-user", "t-octo"))
        self.get("capability[]=state", *(f"state[]={state}" for state in answer.get("state[]", [])), *host)

    def test_unknown_keys_and_operations(self):
        self.log_in("octo", "t-octo")
        self.assertEqual(self.get("protocol=https", "quit=1", "colour=blue", "list[]=x", "host=forge.example", "continue=1"), ("token-user", "t-octo"))
        self.assertEqual(self.ask("frobnicate", "protocol=https", "host=forge.example"), {})
        self.assertEqual(self.run_program("git-credential", "capability").out,
                         "version 0\ncapability authtype\ncapability state\n")

    def test_limits(self):
        host = ("protocol=https", "host=example.com")
        self.ask("get", *host, "wwwauth[]=" + "x" * 70_000, status=USAGE)
        self.ask("get", *host, *["wwwauth[]=" + "x" * 60_000] * 20, status=USAGE)
        self.ask("store", *host, "username=" + "u" * 4097, "password=p", status=USAGE)
        self.ask("store", *host, "username=" + "u" * 4096, "password=" + "p" * 65_000)
        self.assertEqual(self.get(*host), ("u" * 4096, "p" * 65_000))

    def test_a_hint_for_a_host_with_a_known_realm(self):
        asked = ("protocol=https", "host=git.example.org", 'wwwauth[]=Basic realm="GitLab"')
        outcome = self.run_program("git-credential", "get", stdin="\n".join(asked) + "\n\n")
        self.assertEqual((outcome.status, outcome.out), (0, ""))
        self.assertIn("credmgr add-provider gitlab --set host=git.example.org --client-id ID", outcome.err)
        for realm in ("Gitea", "GitHub", "Forgejo", "Atlassian Bitbucket"):
            outcome = self.run_program("git-credential", "get",
                                       stdin=f'protocol=https\nhost=git.example.org\nwwwauth[]=basic REALM="{realm}"\n\n')
            self.assertIn(f'"git.example.org" reports that it is {realm}, but', outcome.err)
            self.assertIn("credmgr add-provider", outcome.err)
        # Any server can claim a realm, so it never leads to a token or overrides stored logins.
        self.credmgr("add-provider", "gitlab", "--client-id", "client")
        self.credmgr("login", "gitlab", "--account", "octo", "--with-token", "--yes", stdin="t-gitlab\n")
        outcome = self.run_program("git-credential", "get", stdin="\n".join(asked) + "\n\n")
        self.assertEqual(outcome.out, "")
        self.assertIn("--as gitlab-git.example.org", outcome.err)
        self.ask("store", *asked[:2], "username=ada", "password=1")
        outcome = self.run_program("git-credential", "get", stdin="\n".join(asked) + "\n\n")
        self.assertEqual(outcome.err, "")
        self.assertIn("password=1", outcome.out)


class NewGit(ProtocolTest):
    """The input and output of git since 2.46, line by line (git-credential(1), INPUT/OUTPUT FORMAT)."""

    QUESTION = "capability[]=authtype\ncapability[]=state\nprotocol=http\nhost=127.0.0.1:4433\n"
    BEARER, BASIC = "wwwauth[]=Bearer realm=x\n", 'wwwauth[]=Basic realm="x"\n'

    def setUp(self):
        super().setUp()
        self.service = self.serve(OAuth2Server(lifetime=100_000_000))
        self.credmgr("login", self.add("git-host", self.service, oauth2_server.PUBLIC_CLIENT, git_port=4433), "--account", ADA)
        self.revision = None

    def lines(self, operation, *more):
        outcome = self.run_program("git-credential", operation, stdin=self.QUESTION + "".join(more) + "\n")
        self.assertEqual((outcome.status, outcome.err), (0, ""))
        return outcome.out

    def state(self, answer):
        return next(line + "\n" for line in answer.splitlines() if line.startswith("state[]="))

    def answer(self, secret, state, more="continue=1\n"):
        """Returns the exact expected answer."""
        return re.compile(re.escape(
            "capability[]=authtype\nephemeral=1\n" + secret + "password_expiry_utc=EXPIRY\ncapability[]=state\n"
            + f"state[]=credmgr.{state}=REVISION git-host {ADA}\n" + more
        ).replace("EXPIRY", r"\d{10}").replace("REVISION", r"\d+") + r"\Z")

    def password(self):
        return f"username=judge\npassword={self.service.tokens[-1].access_token}\n"

    def bearer(self):
        return f"authtype=Bearer\ncredential={self.service.tokens[-1].access_token}\n"

    def test_a_refused_password_is_replaced_once(self):
        first = self.lines("get", self.BASIC)
        self.assertRegex(first, self.answer(self.password(), "given"))
        second = self.lines("get", self.BASIC, self.state(first))
        self.assertEqual(self.service.counts["granted:refresh_token"], 1)
        self.assertRegex(second, self.answer(self.password(), "given", more=""))
        # git reports success to all helpers, but the token must not be stored.
        self.assertEqual(self.lines("store", "ephemeral=1\n", self.password(), self.state(second)), "")
        self.assertRegex(self.lines("get"), self.answer(self.password(), "given"))
        self.assertEqual(self.service.counts["granted:refresh_token"], 1)
        # The state says which account to use.
        self.lines("erase", self.password(), self.state(second))
        self.lines("get")
        self.assertEqual(self.service.counts["granted:refresh_token"], 2)

    def test_bearer(self):
        first = self.lines("get", self.BEARER)
        self.assertRegex(first, self.answer(self.bearer(), "bearer"))
        second = self.lines("get", self.BEARER, self.state(first))
        self.assertEqual(self.service.counts["granted:refresh_token"], 1)
        self.assertRegex(second, self.answer(self.bearer(), "bearer", more=""))
        self.assertRegex(self.lines("get", self.BEARER, self.BASIC), self.answer(self.password(), "given"))

    def test_a_password_that_was_sent_before_git_knew_the_scheme(self):
        """`http.proactiveAuth=basic` with a server that accepts only Bearer."""
        for _ in range(2):
            first = self.lines("get")
            self.assertRegex(first, self.answer(self.password(), "given"))
            self.lines("erase", self.password(), self.BEARER, self.state(first))
            self.assertRegex(self.lines("get", self.BEARER, self.state(first)), self.answer(self.bearer(), "bearer"))
        self.assertEqual(self.service.counts["granted:refresh_token"], 0)

    def test_credentials_of_other_helpers(self):
        self.QUESTION = self.QUESTION.replace("127.0.0.1:4433", "example.com")
        stored = "authtype=Bearer\ncredential=t-1\n"
        self.lines("store", stored, "password_expiry_utc=9999999999\noauth_refresh_token=r-1\nstate[]=other.helper=1\n")
        self.assertEqual(self.lines("get"), "capability[]=authtype\n" + stored
                         + "password_expiry_utc=9999999999\noauth_refresh_token=r-1\n")
        for no in ("0", "false", "no"):
            self.lines("store", f"ephemeral={no}\nusername={no}\npassword=p\n")
            self.assertEqual(self.lines("get", f"username={no}\n"), f"username={no}\npassword=p\n")
        self.lines("store", "ephemeral=true\nusername=u\npassword=p\n")
        self.assertEqual(self.lines("get", "username=u\n"), "")
        self.lines("store", "username=old\npassword=p\npassword_expiry_utc=1\n")
        self.assertEqual(self.lines("get", "username=old\n"), "")


class Attacks(ProtocolTest):
    """Each attack targets a host of a provider with an account, and one with a stored login."""

    def setUp(self):
        super().setUp()
        self.log_in("octo", "t-octo")
        self.ask("store", "protocol=https", "host=example.com", "username=ada", "password=stored-1")

    def assert_refused(self, text):
        for good in ("forge.example", "example.com"):
            question = text.replace("GOOD", good)
            for operation in ("get", "store", "erase"):
                outcome = self.run_program("git-credential", operation, stdin=question)
                self.assertEqual(outcome.out, "", question)
            self.assertEqual(self.get("protocol=https", "host=forge.example"), ("token-user", "t-octo"), question)
            self.assertEqual(self.get("protocol=https", "host=example.com"), ("ada", "stored-1"), question)

    def test_cve_2020_5260_a_line_feed_in_a_value(self):
        # https://evil.example?%0ahost=GOOD, as an unfixed git passes it on.
        self.assert_refused("protocol=https\nhost=evil.example?\nhost=GOOD\n\n")
        self.assert_refused("protocol=https\nhost=evil.example\nhost=GOOD\n\n")
        self.assert_refused("protocol=https\nhost=GOOD\nusername=x\nhost=evil.example\nprotocol=http\n\n")

    def test_cve_2020_11008_no_host_or_no_protocol(self):
        for text in ("protocol=https\nhost=\n\n", "protocol=https\n\n", "host=GOOD\n\n", "protocol=\nhost=GOOD\n\n",
                     "protocol=https\npath=GOOD\n\n", "\n", "", "protocol=https\nhost=:443\n\n",
                     "protocol=https\nhost=/GOOD\n\n"):
            self.assert_refused(text)

    def test_cve_2024_50338_a_carriage_return_that_another_reader_takes_for_a_line_end(self):
        self.assert_refused("protocol=https\nhost=evil.example\rhost=GOOD\n\n")
        self.assert_refused("protocol=https\nhost=evil.example\nusername=x\rhost=GOOD\n\n")
        self.assert_refused("protocol=https\nhost=GOOD\r\n\n")

    def test_cve_2024_52006_a_carriage_return_anywhere(self):
        self.assert_refused("protocol=https\rx\nhost=GOOD\n\n")
        self.assert_refused("protocol=https\nhost=GOOD\npath=a\rb\n\n")
        self.assert_refused("protocol=https\nhost=GOOD\nunknown=a\rb\n\n")
        self.assert_refused("protocol=https\r\nhost=GOOD\r\n\r\n")

    def test_a_nul(self):
        self.assert_refused("protocol=https\nhost=GOOD\0.evil.example\n\n")
        self.assert_refused("protocol=https\nhost=GOOD\npassword=\0\n\n")

    def test_hosts_with_the_same_beginning(self):
        for host in ("GOOD/.evil.example", "GOOD?.evil.example", "GOOD#.evil.example", "GOOD\\.evil.example",
                     "x@GOOD", "GOOD%2F.evil.example", "GOOD evil.example", "GOOD\t", "GOOD:443:443", "GOOD."):
            self.assert_refused(f"protocol=https\nhost={host}\n\n")

    def test_http_where_the_provider_says_https(self):
        for question in (("get",), ("store", "username=ada", "password=p"), ("erase", "password=t-octo")):
            outcome = self.run_program("git-credential", question[0], stdin="protocol=http\nhost=forge.example\n"
                                       + "".join(line + "\n" for line in question[1:]) + "\n")
            self.assertEqual(outcome.out, "")
            self.assertIn("only over https", outcome.err)
        self.assertIsNone(self.get("protocol=http", "host=forge.example"))
        self.assertEqual(self.get("protocol=https", "host=forge.example"), ("token-user", "t-octo"))

    def test_a_similar_descriptor_is_not_used_for_another_host(self):
        for host in ("forge.example.evil.example", "evil-forge.example", "forge.example:444", "forge"):
            self.assertIsNone(self.get("protocol=https", f"host={host}"), host)


class WithGit(GitTest):
    """The same through `git credential`, which finds the helper by its name."""

    def setUp(self):
        super().setUp()
        folder = os.path.join(self.folder, "bin")
        os.mkdir(folder)
        os.symlink(BINARY, os.path.join(folder, "git-credential-credmgr"))
        self.environment["PATH"] = folder + ":" + self.environment["PATH"]
        self.environment["GIT_ASKPASS"] = self.file("askpass", "#!/bin/sh\necho asked-for\n", 0o700)

    def credential(self, operation, *lines, helper="credmgr", options=()):
        outcome = self.run_program("-c", f"credential.helper={helper}", *options, "credential", operation, binary=GIT,
                                   stdin="".join(f"{line}\n" for line in lines) + "\n")
        self.assertEqual(outcome.status, 0, outcome.err)
        return dict(line.split("=", 1) for line in outcome.out.splitlines())

    def test_fill_approve_reject(self):
        host = ("protocol=https", "host=example.com")
        self.assertEqual(self.credential("fill", *host)["password"], "asked-for")
        self.credential("approve", *host, "username=ada", "password=1")
        self.assertEqual(self.credential("fill", *host)["password"], "1")
        self.credential("reject", *host, "username=ada", "password=1")
        self.assertEqual(self.credential("fill", *host)["password"], "asked-for")

    def test_paths(self):
        host = ("protocol=https", "host=example.com")
        by_path = ("-c", "credential.useHttpPath=true")
        self.credential("approve", *host, "path=a.git", "username=ada", "password=1", options=by_path)
        self.assertEqual(self.credential("fill", *host, "path=b.git", options=by_path)["password"], "asked-for")
        self.assertEqual(self.credential("fill", *host, "path=a.git", options=by_path)["password"], "1")
        self.assertEqual(self.credential("fill", *host, "path=b.git")["password"], "1", "git says no path")

    def test_a_lifetime(self):
        host = ("protocol=https", "host=timeout.example")
        self.credential("approve", *host, "username=ada", "password=1", helper=f"credmgr --timeout={brief()}")
        self.expire()
        self.assertEqual(self.credential("fill", *host, helper=f"credmgr --timeout={brief()}")["password"], "asked-for")

    def test_the_name_still_works_when_the_token_is_refreshed(self):
        self.ready(lifetime=brief())
        self.expire()
        host = f"host=127.0.0.1:{self.git_server.port}"
        answer = self.credential("fill", "protocol=http", host)
        self.assertEqual(answer["password"], self.service.tokens[-1].access_token)
        self.assertEqual(self.service.counts["granted:refresh_token"], 1)


del GitTest
