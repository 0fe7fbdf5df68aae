import CredmgrCCurl
import Glibc
import CredmgrHTTP
import CredmgrText

/// A libcurl handle with its open connections.
@safe final class CurlSession {
  private let curl: credmgr_curl
  private let handle: UnsafeMutableRawPointer
  private let userAgent: String
  private let trust: CurlTrust

  /// libcurl, loaded and initialized by the first caller; Swift makes other threads wait for it.
  nonisolated(unsafe) private static let loaded: credmgr_curl? = {
    var curl = credmgr_curl()
    return unsafe credmgr_curl_load(&curl) != 0 ? curl : nil
  }()

  /// Loads libcurl in a thread (see ``CurlClient/preload()``).
  static func preload() {
    var thread = pthread_t()
    let code = unsafe pthread_create(&thread, nil, { _ in unsafe CurlSession.load() }, nil)
    if code == 0 { pthread_detach(thread) }
  }

  private static func load() -> UnsafeMutableRawPointer? {
    _ = unsafe loaded
    return nil
  }

  init(userAgent: String, trust: CurlTrust) throws(HTTPError) {
    guard let curl = unsafe Self.loaded else { throw .libraryMissing("libcurl.so.4") }
    guard let handle = curl.easy() else { throw .system(call: "curl_easy_init", code: 0) }
    self.curl = curl
    unsafe self.handle = handle
    self.userAgent = userAgent
    self.trust = trust
  }

  deinit { unsafe curl.cleanup(handle) }

  func perform(
    _ request: HTTPRequest, lines: [String], limits: HTTPLimits, transfer: CurlTransfer
  ) throws(HTTPError) -> HTTPResponse {
    var list: UnsafeMutablePointer<curl_slist>?
    // CURLOPT_HTTPHEADER(3): the list must stay valid during the transfer, and we must free it.
    defer { unsafe curl.free_all(list) }
    for line in lines {
      // curl_slist_append(3) copies the text. On failure it returns NULL and leaves the list unchanged.
      guard let longer = unsafe curl.append(list, line) else {
        throw .system(call: "curl_slist_append", code: 0)
      }
      unsafe list = longer
    }
    let message = UnsafeMutablePointer<CChar>.allocate(capacity: Int(CURL_ERROR_SIZE))
    unsafe message.initialize(repeating: 0, count: Int(CURL_ERROR_SIZE))
    defer {
      // Makes libcurl forget this exchange before the buffer and the list disappear. The connection stays open.
      unsafe curl.reset(handle)
      unsafe message.deallocate()
    }
    try configure(request, limits)
    try check(unsafe credmgr_curl_set_pointer(curl, handle, CURLOPT_HTTPHEADER, list))
    try check(unsafe credmgr_curl_set_pointer(curl, handle, CURLOPT_ERRORBUFFER, message))
    try check(unsafe transfer.attach(to: handle, of: curl))
    if transfer.body != nil {
      // Comes last because libcurl chooses its own method for a body.
      try check(unsafe transfer.attachBody(to: handle, of: curl))
      try set(CURLOPT_CUSTOMREQUEST, request.method)
    }
    let code = withExtendedLifetime(transfer) { unsafe curl.perform(handle) }
    if let failure = transfer.failure { throw failure }
    if code == CURLE_OK || transfer.isEndedByReceiver, let head = transfer.head { return head }
    let detail = unsafe String(cString: message)
    let text = unsafe curl.error_text(code).map { unsafe String(cString: $0) } ?? ""
    throw .unreachable(code, host: request.uri.host ?? "", text: text, detail: detail)
  }

  private func configure(_ request: HTTPRequest, _ limits: HTTPLimits) throws(HTTPError) {
    let uri = request.uri
    try set(CURLOPT_URL, uri.with(fragment: nil).text)
    // A signature covers the path as written, so libcurl must not resolve its dots.
    try set(CURLOPT_PATH_AS_IS, 1)
    try set(CURLOPT_PROTOCOLS_STR, "http,https")
    try set(CURLOPT_DISALLOW_USERNAME_IN_URL, 1)
    try set(CURLOPT_FOLLOWLOCATION, 0)
    try set(CURLOPT_NETRC, 0)
    // CURLOPT_NOSIGNAL(3): otherwise libcurl replaces our signal handlers with its own.
    try set(CURLOPT_NOSIGNAL, 1)
    try set(CURLOPT_USERAGENT, userAgent)
    // The proxy must not receive the fields meant for the server.
    try set(CURLOPT_HEADEROPT, Int(CURLHEADER_SEPARATE))
    try set(CURLOPT_SUPPRESS_CONNECT_HEADERS, 1)
    if uri.isLoopback { try set(CURLOPT_PROXY, "") }
    try set(CURLOPT_ACCEPT_ENCODING, "")
    try set(CURLOPT_HTTP_VERSION, CURL_HTTP_VERSION_2TLS)
    try set(CURLOPT_HTTP09_ALLOWED, 0)
    try set(CURLOPT_SSLVERSION, CURL_SSLVERSION_TLSv1_2)
    try set(CURLOPT_SSL_VERIFYPEER, 1)
    try set(CURLOPT_SSL_VERIFYHOST, 2)
    if let file = trust.file { try set(CURLOPT_CAINFO, file) }
    if let folder = trust.folder { try set(CURLOPT_CAPATH, folder) }
    if let certificate = request.clientCertificate {
      try check(
        unsafe certificate.withUnsafeBytes {
          unsafe credmgr_curl_set_certificate(curl, handle, $0.baseAddress, $0.count)
        })
    }
    // Zero would mean no limit, so the minimum is one millisecond.
    func milliseconds(_ time: Duration) -> Int { Int(max(1, time.millisecondsRoundedUp)) }
    try set(CURLOPT_CONNECTTIMEOUT_MS, milliseconds(min(limits.time ?? .seconds(30), .seconds(30))))
    if let time = limits.time { try set(CURLOPT_TIMEOUT_MS, milliseconds(time)) }
    try configureMethod(request)
  }

  private func configureMethod(_ request: HTTPRequest) throws(HTTPError) {
    if request.method == "HEAD" {
      try set(CURLOPT_NOBODY, 1)
    } else if !request.body.isEmpty || ["POST", "PUT", "PATCH"].contains(request.method) {
      let body = request.body
      try check(
        unsafe body.withUnsafeBytes { unsafe credmgr_curl_set_body(curl, handle, $0.baseAddress, Int64($0.count)) })
    } else {
      try set(CURLOPT_HTTPGET, 1)
    }
    try set(CURLOPT_CUSTOMREQUEST, request.method)
    // libcurl repeats a request if a reused connection turns out to be dead. The server may have processed the first
    // one, and a refresh token used twice can end the grant.
    if request.method != "GET", request.method != "HEAD" { try set(CURLOPT_FRESH_CONNECT, 1) }
  }

  private func set(_ option: CURLoption, _ value: String) throws(HTTPError) {
    try check(unsafe credmgr_curl_set_pointer(curl, handle, option, value))
  }

  private func set(_ option: CURLoption, _ value: Int) throws(HTTPError) {
    try check(unsafe credmgr_curl_set_number(curl, handle, option, value))
  }

  private func check(_ code: CURLcode) throws(HTTPError) {
    if code != CURLE_OK { throw .system(call: "curl_easy_setopt", code: Int32(bitPattern: code.rawValue)) }
  }
}
