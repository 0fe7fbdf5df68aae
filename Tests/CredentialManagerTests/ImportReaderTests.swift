import CredmgrCryptography
import CredmgrPlatform
import Testing

@testable import CredmgrCredentialManager

/// Reads files as the tools write them.
@Suite struct ImportReaderTests {
  private func places(_ variables: [String: String] = [:], run: @escaping ImportPlaces.Run = noProgram) -> ImportPlaces
  {
    ImportPlaces(environment: { variables[$0] }, home: "/home/ada", directory: "/work", run: run)
  }

  static func noProgram(_ command: ImportCommand) throws(ImportFault) -> [UInt8] {
    throw .file(.commandNotFound(command.program))
  }

  /// Returns `NAME HOST USER KIND SECRET` for each entry.
  private func shown(_ source: ImportSource, _ text: String) throws -> [String] {
    try source.entries(ImportText(path: "/file", Array(text.utf8))).map { entry in
      var secret = ""
      if case .value(let value) = entry.held { secret = value.reveal() }
      if case .command(let command) = entry.held {
        secret = ([command.program] + command.arguments).joined(separator: " ")
      }
      return [entry.name, entry.host, entry.user ?? "-", entry.kind.rawValue, secret].joined(separator: " ")
    }
  }

  /// The rest of a file after the removal of its entry with this name.
  private func rest(_ source: ImportSource, _ text: String, without name: String) throws -> String {
    let file = try ImportText(path: "/file", Array(text.utf8))
    let entry = try #require(try source.entries(file).first { $0.name == name })
    guard case .cut(let ranges) = entry.removal else { throw ImportFault.notRemovable(place: name) }
    return String(decoding: file.without(ranges), as: UTF8.self)
  }

  @Test func gitHubCLIBefore240() throws {
    let text =
      "github.com:\n    oauth_token: gho_1\n    user: ada\n    git_protocol: https\nghe.example:\n    oauth_token: gho_2\n"
    #expect(
      try shown(.gitHubCLI, text) == [
        "ada@github.com github.com ada token gho_1", "ghe.example ghe.example - token gho_2",
      ])
    #expect(
      try rest(.gitHubCLI, text, without: "ada@github.com")
        == "github.com:\n    user: ada\n    git_protocol: https\nghe.example:\n    oauth_token: gho_2\n")
  }

  @Test func gitHubCLIWithSeveralUsers() throws {
    let text = """
      github.com:
          git_protocol: https
          users:
              ada:
                  oauth_token: gho_1
              grace:
                  oauth_token: gho_2
              key:
          user: ada
          oauth_token: gho_1

      """
    #expect(
      try shown(.gitHubCLI, text) == [
        "ada@github.com github.com ada token gho_1", "grace@github.com github.com grace token gho_2",
      ])
    let left = try rest(.gitHubCLI, text, without: "ada@github.com")
    #expect(!left.contains("gho_1") && left.contains("gho_2"))
  }

  @Test func gitCredentialStore() throws {
    // git 2.39 wrote these lines.
    let text =
      "https://ada:pw1@127.0.0.1%3a8443\n# a comment\nhttps://a%2fb%40c:p%3aw%40%20%25x@git.example.org/team/x.git\n"
    #expect(
      try shown(.gitCredentialStore, text) == [
        "ada@127.0.0.1:8443 127.0.0.1:8443 ada password pw1",
        "a/b@c@git.example.org git.example.org a/b@c password p:w@ %x",
      ])
    #expect(try rest(.gitCredentialStore, text, without: "ada@127.0.0.1:8443").hasPrefix("# a comment\nhttps://a%2fb"))
  }

  @Test func gitCredentialStoreNamesItsFile() {
    let places = places { command in
      command.program == "git" ? Array("cache\nstore --file=~/x\nstore --file /etc/y\n".utf8) : []
    }
    #expect(
      ImportSource.gitCredentialStore.files(places)
        == ["/home/ada/.git-credentials", "/home/ada/.config/git/credentials", "/home/ada/x", "/etc/y"])
  }

  @Test func netrc() throws {
    let text = """
      # mine
      machine git.example.org login ada password pw#1 account x
      machine api.example.org
        login "grace h" # hers
        password "p \\"w\\\\"
      machine empty.example login nobody
      macdef init
      machine evil login x password y

      default login anonymous password me

      """
    #expect(
      try shown(.netrc, text) == [
        "ada@git.example.org git.example.org ada password pw#1",
        "grace h@api.example.org api.example.org grace h password p \"w\\", "default  anonymous unsupported ",
      ])
    #expect(try rest(.netrc, text, without: "ada@git.example.org").hasPrefix("# mine\nmachine api.example.org\n"))
    #expect(try rest(.netrc, text, without: "grace h@api.example.org").contains("account x\n# hers\nmachine empty"))
  }

  /// A macro belongs to the machine above it, so that machine stays.
  @Test func netrcWithAMacro() throws {
    let file = try ImportText(path: "/f", Array("machine a.example login x password y\nmacdef init\ncd /\n\n".utf8))
    #expect(try ImportSource.netrc.entries(file).map(\.removal) == [.none])
  }

  @Test func docker() throws {
    let text = """
      {"auths": {"https://index.docker.io/v1/": {"auth": "YWRhOnB3"}, "ghcr.io": {"auth": "YWRhOnA6dzE="},
       "r.example": {"auth": "YWRhOg==", "identitytoken": "t"}, "q.example": {}, "bad": {"auth": "%"}},
       "credsStore": "secretservice", "HttpHeaders": {"x": "y"}}
      """
    #expect(
      try shown(.docker, text) == [
        "ada@index.docker.io index.docker.io ada password pw", "ada@ghcr.io ghcr.io ada password p:w1",
        "r.example r.example - unsupported ",
        "q.example q.example - password docker-credential-secretservice get",
        "bad bad - password docker-credential-secretservice get",
      ])
  }

  @Test func npm() throws {
    let text = """
      registry=https://registry.example.org/
      //registry.npmjs.org/:_authToken=npm_1
      //npm.pkg.github.com/:_authToken=${GITHUB_TOKEN}
      //old.example:8443/npm/:_auth = "YWRhOnB3"
      ; //x.example/:_authToken=no
      """
    #expect(
      try shown(.npm, text) == [
        "registry.npmjs.org registry.npmjs.org - token npm_1",
        "ada@old.example:8443 old.example:8443 ada password pw",
      ])
  }

  @Test func pypi() throws {
    let text = """
      [distutils]
      index-servers =
          pypi
          own
      password = no
      [pypi]
      username = __token__
      password = pypi-1
      [own]
      repository: https://pypi.example.org/simple
      username: ada
      password: pw
      """
    #expect(
      try shown(.pypi, text) == [
        "pypi upload.pypi.org - token pypi-1", "own pypi.example.org ada password pw",
      ])
    #expect(try rest(.pypi, text, without: "pypi").contains("username = __token__\n[own]"))
  }

  @Test func cargo() throws {
    let text = """
      [registry]
      token = "cio\\u0041" # a comment
      [registries."own"]
      token = 'lit"eral'
      secret-key = "no"
      [other]
      token = "no"
      """
    #expect(try shown(.cargo, text) == ["crates.io crates.io - token cioA", "own  - token lit\"eral"])
    #expect(throws: ImportFault.malformed(path: "/file")) { try shown(.cargo, "x = \"\"\"\n[registry]\n\"\"\"\n") }
  }

  @Test func environmentFile() throws {
    let text = """
      # GH_TOKEN=no
      export GH_TOKEN=gho_1 # mine
      OPENAI_API_KEY="sk 2"
      DB_PASSWORD='a$b'
      GITLAB_TOKEN=$(pass gitlab)
      PORT=80
      _TOKEN=x
      EMPTY_TOKEN=
      TEXT="a
      TEXT_TOKEN=x
      "
      HF_TOKEN='y'
      """
    #expect(
      try shown(.environmentFile, text) == [
        "GH_TOKEN github.com - token gho_1", "OPENAI_API_KEY  - token sk 2", "DB_PASSWORD  - token a$b",
        "HF_TOKEN huggingface.co - token y",
      ])
    let named = "GITHUB_TOKEN=t\nexport GH_HOST=\"Acme.ghe.com\"\nHF_TOKEN=y\n"
    #expect(
      try shown(.environmentFile, named) == [
        "GITHUB_TOKEN acme.ghe.com - token t", "HF_TOKEN huggingface.co - token y",
      ])
  }

  @Test func passNamesHostsAndRegistries() throws {
    let folder = "/tmp/credmgr-pass.\(UInt64.random(in: 0 ... .max))"
    let names = [
      ".gpg-id", "git/github.com/ada.gpg", "github.com.gpg", "bank.gpg", ".git/x.example.gpg",
      "docker-credential-helpers/aHR0cHM6Ly9pbmRleC5kb2NrZXIuaW8vdjEv/ada.gpg",
    ]
    for name in names {
      let path = folder + "/" + name
      try PrivateFile.createDirectory(Path.directory(of: path) ?? "")
      try PrivateFile.replace(path, [])
    }
    let entries = try ImportSource.pass.ask(places(["PASSWORD_STORE_DIR": folder]))
    #expect(
      entries.map { "\($0.name) \($0.host) \($0.user ?? "-")" } == [
        "docker-credential-helpers/aHR0cHM6Ly9pbmRleC5kb2NrZXIuaW8vdjEv/ada index.docker.io ada",
        "git/github.com/ada github.com ada", "github.com github.com -",
      ])
    // No program decrypts anything before an entry is moved.
    #expect(throws: ImportFault.file(.commandNotFound("pass"))) { try entries[1].login(places()).secret }
    #expect(try entries[1].login(places { _ in Array("pw\nlogin: ada\n".utf8) }).secret.reveal() == "pw")
    #expect(throws: ImportFault.program("pass", status: 0)) { try entries[1].login(places { _ in [] }).secret }
  }

  @Test func secretService() throws {
    // secret-tool 0.20 wrote this.
    let output = """
      [/1]
      label = Git: https://github.com
      secret = tok1
      schema = org.git.Password
      attribute.object =\u{20}
      attribute.port = 8443
      attribute.protocol = https
      attribute.server = github.com
      attribute.user = ada

      """
    let places = places(["DBUS_SESSION_BUS_ADDRESS": "unix:path=/x"]) { command in
      command.arguments.contains("org.git.Password") ? Array(output.utf8) : []
    }
    let entry = try #require(try ImportSource.secretService.ask(places).first)
    #expect(entry.name == "ada@github.com:8443" && entry.address == "https://github.com:8443")
    let attributes = "xdg:schema org.git.Password object  port 8443 protocol https server github.com user ada"
    guard case .command(let removal) = entry.removal else { throw ImportFault.notRemovable(place: "") }
    #expect(removal.arguments.joined(separator: " ") == "clear " + attributes)
    #expect(try ImportSource.secretService.ask(self.places()) == [])
  }

  @Test func gitCredentialCache() throws {
    let home = "/tmp/credmgr-cache.\(UInt64.random(in: 0 ... .max))"
    try PrivateFile.createDirectory(home + "/.git-credential-cache/socket")
    var questions: [String] = []
    var places = ImportPlaces(environment: { _ in nil }, home: home, directory: nil) { command in
      questions.append(command.arguments[1] + " " + command.input)
      let isErased = questions.contains { $0.hasPrefix("erase") }
      return command.input.contains("github.com") && !isErased ? Array("username=ada\npassword=pw\n".utf8) : []
    }
    places.gitHosts = { ["github.com", "gitlab.com"] }
    let entry = try #require(try ImportSource.gitCredentialCache.ask(places).first)
    #expect(entry.name == "ada@github.com")
    #expect(try entry.login(places).secret.reveal() == "pw")
    try entry.remove(places) { true }
    #expect(questions.dropLast().last == "erase protocol=https\nhost=github.com\nusername=ada\n\n")
    #expect(throws: ImportFault.notWorking(place: "git credential-cache")) { try entry.remove(places) { false } }
  }

  @Test func aProfileOfAWS() throws {
    let text =
      "[default]\naws_access_key_id = A\nregion = y\naws_secret_access_key = B\n[x]\nregion = y\n"
      + "[t]\naws_access_key_id = C\naws_secret_access_key = D\naws_session_token = E\n"
    #expect(try shown(.aws, text) == ["default  default token B", "t  t token D"])
    let entries = try ImportSource.aws.entries(ImportText(path: "/file", Array(text.utf8)))
    #expect(entries.map { $0.variables.keys.sorted() }.last?.last == "AWS_SESSION_TOKEN")
    #expect(entries.first?.variables["AWS_ACCESS_KEY_ID"] == Secret("A"))
    #expect(try rest(.aws, text, without: "t") == String(text.prefix(text.count - 70)))
  }

  @Test func aPlainFileOfGitCredentialManager() throws {
    let text = "gho_1\nservice=https://forge.example\naccount=ada\n"
    #expect(
      try shown(.gitCredentialManager, text) == ["ada@forge.example forge.example ada password gho_1"])
    #expect(try rest(.gitCredentialManager, text, without: "ada@forge.example").isEmpty)
    #expect(try shown(.gitCredentialManager, "") == [])
    #expect(try shown(.gitCredentialManager, "gho_1\naccount=ada\n") == [])
  }

  @Test func theFilesOfGoogleCloud() throws {
    let user = #"{"type": "authorized_user", "client_id": "c", "refresh_token": "r", "client_secret": ""}"#
    #expect(try shown(.gcloud, user) == ["application-default  - token \(user)"])
    let client = try #require(ImportedClient(Secret(user)))
    #expect(client.identifier == "c" && client.secret == nil && client.refreshToken == Secret("r"))
    let account = #"{"type": "service_account", "client_email": "a@b"}"#
    #expect(try shown(.gcloud, account) == ["a@b  - token \(account)"])
    #expect(try shown(.gcloud, #"{"type": "external_account", "client_id": "c", "refresh_token": "r"}"#) == [])
    #expect(try shown(.gcloud, #"{"type": "authorized_user", "client_id": "c"}"#) == [])
    #expect(try shown(.gcloud, #"{"universe_domain": "other.example", "type": "service_account"}"#) == [])
    #expect(throws: ImportFault.malformed(path: "/file")) { try shown(.gcloud, "[]") }
  }

  @Test func filesFollowTheVariablesOfTheTools() {
    #expect(ImportSource.gitHubCLI.files(places(["GH_CONFIG_DIR": "/g"])) == ["/g/hosts.yml"])
    #expect(ImportSource.gitHubCLI.files(places(["XDG_CONFIG_HOME": "/c"])) == ["/c/gh/hosts.yml"])
    #expect(ImportSource.docker.files(places(["DOCKER_CONFIG": "/d"])) == ["/d/config.json"])
    #expect(ImportSource.cargo.files(places(["CARGO_HOME": "/k"])).first == "/k/credentials.toml")
    #expect(ImportSource.netrc.files(places(["NETRC": "relative"])) == ["/home/ada/.netrc"])
    #expect(ImportSource.environmentFile.files(places()) == ["/work/.env"])
  }

  @Test func namesOfSourcesDiffer() {
    #expect(Set(ImportSource.all.map(\.name)).count == ImportSource.all.count)
    #expect(ImportSource.all.allSatisfy { !$0.name.contains(":") })
  }

  /// Every source reads any text without a crash, and its removals leave the other entries unchanged.
  @Test(arguments: ImportSource.all.map(\.name)) func truncatedFiles(_ name: String) throws {
    let source = try #require(ImportSource.all.first { $0.name == name })
    for seed in importSeeds {
      for end in stride(from: 0, through: seed.utf8.count, by: 3) {
        let bytes = Array(Array(seed.utf8)[..<end])
        guard let file = try? ImportText(path: "/file", bytes) else { continue }
        for entry in (try? source.entries(file)) ?? [] {
          guard case .cut(let ranges) = entry.removal else { continue }
          #expect(ranges.allSatisfy { $0.upperBound <= bytes.count })
          #expect(file.without(ranges).count < bytes.count)
        }
      }
    }
  }
}

private let importSeeds = [
  "github.com:\n  oauth_token: é1\n  user: ada\n", "https://ada:p%C3%A9@x.example/\r\n",
  "machine a.example login \"x\\\"\" password \"y", "{\"auths\":{\"x.example\":{\"auth\":\"YWRhOnB3\"}}}",
  "//x.example/:_authToken=\"t\\u00e9\"\n", "[registry]\ntoken = \"t\\\"u\" # c\n", "[pypi]\npassword = x\n",
  "\u{FEFF}export A_TOKEN='x' # y\nB_KEY=\"z\"\n",
]
