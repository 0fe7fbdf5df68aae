import CCurl
import Glibc
import HTTP
import Text

/// Certificates are verified, redirects are not followed, and no request is sent twice. The proxy variables of the
/// environment are honoured, but never for loopback. Not for several threads at once.
@safe package final class CurlClient: HTTPExchange {
  /// What a trace is told after each exchange: the request, how it ended, and the time that it took. Of a streamed
  /// answer only the head is there.
  package typealias Trace = (_ request: HTTPRequest, _ outcome: Result<HTTPResponse, HTTPError>, _ time: Duration) ->
    Void

  private let handle: UnsafeMutableRawPointer
  private let userAgent: String
  private let trust: CurlTrust
  private let isCancelled: () -> Bool
  private let trace: Trace?

  /// curl_global_init(3): it must be called once before all else; the language makes this initializer run once.
  private static let isReady = credmgr_curl_global_init() == CURLE_OK

  /// `isCancelled` is asked at least once a second; `trace` sees secrets.
  package init(
    userAgent: String, trust: CurlTrust = CurlTrust(), isCancelled: @escaping () -> Bool = { false },
    trace: Trace? = nil
  ) throws(HTTPError) {
    guard Self.isReady, let handle = unsafe curl_easy_init() else {
      throw .system(call: "curl_easy_init", code: 0)
    }
    unsafe self.handle = handle
    self.userAgent = userAgent
    self.trust = trust
    self.isCancelled = isCancelled
    self.trace = trace
  }

  deinit { unsafe curl_easy_cleanup(handle) }

  package func send(_ request: HTTPRequest, limits: HTTPLimits) throws(HTTPError) -> HTTPResponse {
    var body: [UInt8] = []
    return try traced(request) { () throws(HTTPError) -> HTTPResponse in
      var response = try perform(request, body: nil, limits: limits) { part in
        if case .body(let bytes) = part { body += bytes }
        return true
      }
      response.body = body
      return response
    }
  }

  package func stream(
    _ request: HTTPRequest, body: (any HTTPBodySource)?, limits: HTTPLimits, receive: (HTTPPart) -> Bool
  ) throws(HTTPError) -> HTTPResponse {
    try traced(request) { () throws(HTTPError) -> HTTPResponse in
      try perform(request, body: body, limits: limits, receive: receive)
    }
  }

  private func traced(
    _ request: HTTPRequest, _ exchange: () throws(HTTPError) -> HTTPResponse
  ) throws(HTTPError) -> HTTPResponse {
    guard let trace else { return try exchange() }
    let start = Duration.sinceBoot()
    let outcome = Result { () throws(HTTPError) -> HTTPResponse in try exchange() }
    trace(request, outcome, Duration.sinceBoot() - start)
    return try outcome.get()
  }

  private func perform(
    _ request: HTTPRequest, body: (any HTTPBodySource)?, limits: HTTPLimits, receive: (HTTPPart) -> Bool
  ) throws(HTTPError) -> HTTPResponse {
    if isCancelled() { throw .interrupted }
    guard ["http", "https"].contains(request.uri.scheme) else { throw .unsupported(scheme: request.uri.scheme) }
    let lines = try CurlFields.lines(of: request)
    var outcome: Result<HTTPResponse, HTTPError> = .failure(.interrupted)
    withoutActuallyEscaping(receive) { receive in
      let transfer = CurlTransfer(limit: limits.bodyBytes, body: body, isCancelled: isCancelled, receive: receive)
      outcome = Result { () throws(HTTPError) -> HTTPResponse in
        try perform(request, lines: lines, limits: limits, transfer: transfer)
      }
    }
    return try outcome.get()
  }

  private func perform(
    _ request: HTTPRequest, lines: [String], limits: HTTPLimits, transfer: CurlTransfer
  ) throws(HTTPError) -> HTTPResponse {
    var list: UnsafeMutablePointer<curl_slist>?
    // CURLOPT_HTTPHEADER(3): the list must be kept until the transfer is done, and freed by us.
    defer { unsafe curl_slist_free_all(list) }
    for line in lines {
      // curl_slist_append(3): the text is copied; NULL means failure, and the old list is still there.
      guard let longer = unsafe curl_slist_append(list, line) else {
        throw .system(call: "curl_slist_append", code: 0)
      }
      unsafe list = longer
    }
    let message = UnsafeMutablePointer<CChar>.allocate(capacity: Int(CURL_ERROR_SIZE))
    unsafe message.initialize(repeating: 0, count: Int(CURL_ERROR_SIZE))
    defer {
      // What libcurl keeps of this exchange ends here, before the buffer and the list do. The connection stays open.
      unsafe curl_easy_reset(handle)
      unsafe message.deallocate()
    }
    try configure(request, limits)
    try check(unsafe credmgr_curl_set_pointer(handle, CURLOPT_HTTPHEADER, list))
    try check(unsafe credmgr_curl_set_pointer(handle, CURLOPT_ERRORBUFFER, message))
    try check(unsafe transfer.attach(to: handle))
    if transfer.body != nil {
      // After the rest: libcurl takes a method of its own for it.
      try check(unsafe transfer.attachBody(to: handle))
      try set(CURLOPT_CUSTOMREQUEST, request.method)
    }
    let code = withExtendedLifetime(transfer) { unsafe curl_easy_perform(handle) }
    if let failure = transfer.failure { throw failure }
    if code == CURLE_OK || transfer.isEndedByReceiver, let head = transfer.head { return head }
    let detail = unsafe String(cString: message)
    throw .unreachable(code, host: request.uri.host ?? "", detail: detail)
  }

  private func configure(_ request: HTTPRequest, _ limits: HTTPLimits) throws(HTTPError) {
    let uri = request.uri
    try set(CURLOPT_URL, uri.with(fragment: nil).text)
    // A signature is over the path as it is, so dots in it stay.
    try set(CURLOPT_PATH_AS_IS, 1)
    try set(CURLOPT_PROTOCOLS_STR, "http,https")
    try set(CURLOPT_DISALLOW_USERNAME_IN_URL, 1)
    try set(CURLOPT_FOLLOWLOCATION, 0)
    try set(CURLOPT_NETRC, 0)
    // CURLOPT_NOSIGNAL(3): otherwise libcurl puts its own handlers in the place of ours.
    try set(CURLOPT_NOSIGNAL, 1)
    try set(CURLOPT_USERAGENT, userAgent)
    // The fields are for the server and not for a proxy on the way.
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
    // Zero would be no limit at all, so the least is a millisecond.
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
      try check(unsafe body.withUnsafeBytes { unsafe credmgr_curl_set_body(handle, $0.baseAddress, Int64($0.count)) })
    } else {
      try set(CURLOPT_HTTPGET, 1)
    }
    try set(CURLOPT_CUSTOMREQUEST, request.method)
    // libcurl sends a request again if a kept connection turns out to be dead. The server may have acted on the first
    // one, and a refresh token used twice can end the grant.
    if request.method != "GET", request.method != "HEAD" { try set(CURLOPT_FRESH_CONNECT, 1) }
  }

  private func set(_ option: CURLoption, _ value: String) throws(HTTPError) {
    try check(unsafe credmgr_curl_set_pointer(handle, option, value))
  }

  private func set(_ option: CURLoption, _ value: Int) throws(HTTPError) {
    try check(unsafe credmgr_curl_set_number(handle, option, value))
  }

  private func check(_ code: CURLcode) throws(HTTPError) {
    if code != CURLE_OK { throw .system(call: "curl_easy_setopt", code: Int32(bitPattern: code.rawValue)) }
  }
}

/// What `SSL_CERT_FILE` and `SSL_CERT_DIR` name; empty names mean the certificates of the system.
package struct CurlTrust: Sendable, Equatable {
  package var file: String?  // A file of certificates in PEM.
  package var folder: String?  // A folder of certificates, named by their hashes.

  package init(file: String? = nil, folder: String? = nil) {
    self.file = file?.isEmpty ?? true ? nil : file
    self.folder = folder?.isEmpty ?? true ? nil : folder
  }
}
