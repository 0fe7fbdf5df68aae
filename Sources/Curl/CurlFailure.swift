import CredmgrCCurl
import CredmgrHTTP

extension HTTPError {
  /// Translates a code of libcurl-errors(3).
  /// - text: libcurl's sentence for the code.
  static func unreachable(_ code: CURLcode, host: String, text: String, detail: String) -> HTTPError {
    .unreachable(host: host, reason: reason(code, text: text, detail: detail))
  }

  /// The error for a scheme other than HTTP; nothing was sent.
  static func unsupported(scheme: String) -> HTTPError {
    let code = CURLE_UNSUPPORTED_PROTOCOL
    return .unreachable(
      host: "", reason: .other(code: Int32(bitPattern: code.rawValue), text: "Unsupported protocol: \(scheme)"))
  }

  private static func reason(_ code: CURLcode, text: String, detail: String) -> Unreachable {
    switch code {
    case CURLE_COULDNT_RESOLVE_HOST: return .nameNotResolved
    case CURLE_COULDNT_CONNECT: return .connectionRefused
    case CURLE_OPERATION_TIMEDOUT: return .timedOut
    case CURLE_COULDNT_RESOLVE_PROXY, CURLE_PROXY: return .proxy
    case CURLE_SSL_CONNECT_ERROR, CURLE_PEER_FAILED_VERIFICATION, CURLE_SSL_CERTPROBLEM, CURLE_SSL_CIPHER,
      CURLE_USE_SSL_FAILED, CURLE_SSL_CACERT_BADFILE, CURLE_SSL_ISSUER_ERROR, CURLE_SSL_PINNEDPUBKEYNOTMATCH,
      CURLE_SSL_INVALIDCERTSTATUS, CURLE_SSL_CLIENTCERT, CURLE_SSL_ENGINE_INITFAILED:
      return .tls(detail: detail.isEmpty ? text : detail)
    case CURLE_GOT_NOTHING, CURLE_SEND_ERROR, CURLE_RECV_ERROR, CURLE_PARTIAL_FILE, CURLE_WEIRD_SERVER_REPLY,
      CURLE_HTTP2, CURLE_HTTP2_STREAM, CURLE_BAD_CONTENT_ENCODING,
      // libcurl's code for a response without a status line, which would be HTTP/0.9.
      CURLE_UNSUPPORTED_PROTOCOL:
      return .broken
    default:
      // Only the sentence of the code: the detail might repeat the URL.
      return .other(code: Int32(bitPattern: code.rawValue), text: text)
    }
  }
}
