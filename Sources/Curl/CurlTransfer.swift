import CredmgrCCurl
import CredmgrHTTP
import CredmgrText

final class CurlTransfer {
  private(set) var head: HTTPResponse?
  private(set) var failure: HTTPError?  // The reason why this object ended the transfer.
  private(set) var isEndedByReceiver = false

  private var status = 0
  private var fields = HTTPFields()
  private var headBytes = 0
  private var bodyBytes = 0
  private var sentBytes: Int64 = 0
  private let limit: Int
  let body: (any HTTPBodySource)?  // The body, unless the request contains it.
  private let isCancelled: () -> Bool
  private let receive: (HTTPPart) -> Bool

  /// The limit for the head, which stays in memory as a whole.
  private static let headLimit = 256 * 1024

  init(
    limit: Int, body: (any HTTPBodySource)?, isCancelled: @escaping () -> Bool, receive: @escaping (HTTPPart) -> Bool
  ) {
    self.limit = limit
    self.body = body
    self.isCancelled = isCancelled
    self.receive = receive
  }

  /// Makes libcurl call this object, which the caller keeps alive during the transfer.
  @unsafe func attach(to handle: UnsafeMutableRawPointer, of curl: credmgr_curl) -> CURLcode {
    unsafe credmgr_curl_set_callbacks(
      curl, handle, Unmanaged.passUnretained(self).toOpaque(),
      { bytes, size, count, context in
        guard let context = unsafe context else { return 0 }
        let line = unsafe UnsafeRawBufferPointer(start: bytes, count: size * count)
        let transfer = unsafe Unmanaged<CurlTransfer>.fromOpaque(context).takeUnretainedValue()
        return transfer.take(line: unsafe [UInt8](line)) ? size * count : 0
      },
      { bytes, size, count, context in
        guard let context = unsafe context else { return 0 }
        let piece = unsafe UnsafeRawBufferPointer(start: bytes, count: size * count)
        let transfer = unsafe Unmanaged<CurlTransfer>.fromOpaque(context).takeUnretainedValue()
        return transfer.take(body: unsafe [UInt8](piece)) ? size * count : 0
      },
      { context, _, _, _, _ in
        guard let context = unsafe context else { return 1 }
        return unsafe Unmanaged<CurlTransfer>.fromOpaque(context).takeUnretainedValue().goesOn() ? 0 : 1
      })
  }

  @unsafe func attachBody(to handle: UnsafeMutableRawPointer, of curl: credmgr_curl) -> CURLcode {
    unsafe credmgr_curl_set_reader(
      curl, handle, body?.length ?? 0, Unmanaged.passUnretained(self).toOpaque(),
      { buffer, size, count, context in
        guard let context = unsafe context, let buffer = unsafe buffer else { return Int(CURL_READFUNC_ABORT) }
        let transfer = unsafe Unmanaged<CurlTransfer>.fromOpaque(context).takeUnretainedValue()
        guard let piece = transfer.piece(atMost: size * count) else { return Int(CURL_READFUNC_ABORT) }
        unsafe UnsafeMutableRawBufferPointer(start: buffer, count: size * count).copyBytes(from: piece)
        return piece.count
      })
  }

  /// The next bytes for CURLOPT_READFUNCTION(3). Only an empty piece ends the body.
  private func piece(atMost count: Int) -> [UInt8]? {
    do throws(HTTPError) {
      let piece = try body?.read(atMost: min(count, Int(clamping: (body?.length ?? 0) - sentBytes))) ?? []
      sentBytes += Int64(piece.count)
      if piece.isEmpty, let body, sentBytes < body.length {
        // The file became shorter while it was sent.
        throw .system(call: "read", code: 0)
      }
      return piece
    } catch {
      failure = error
      return nil
    }
  }

  /// Takes one complete header line per call (CURLOPT_HEADERFUNCTION(3)); trailers arrive after the body.
  private func take(line: [UInt8]) -> Bool {
    if head != nil { return true }
    headBytes += line.count
    if headBytes > Self.headLimit {
      failure = .bodyTooLarge(limit: Self.headLimit)
      return false
    }
    let end = line.lastIndex { $0 != UInt8(ascii: "\r") && $0 != UInt8(ascii: "\n") }
    guard let end else { return finishHead() }
    let text = line[...end]
    if text.starts(with: "HTTP/".utf8) {
      fields = HTTPFields()
      let code = text.split(separator: UInt8(ascii: " "), maxSplits: 2).dropFirst().first
      status = code.flatMap { Int(String(decoding: $0, as: UTF8.self)) } ?? 0
    } else if let colon = text.firstIndex(of: UInt8(ascii: ":")) {
      fields.append(
        String(decoding: text[..<colon], as: UTF8.self),
        String(decoding: text[(colon + 1)...].trimmingBlanks, as: UTF8.self))
    }
    return true
  }

  private func finishHead() -> Bool {
    // An interim response precedes the final one (RFC 9110, section 15.2).
    if status < 200 { return true }
    let head = HTTPResponse(status: status, fields: fields)
    self.head = head
    return offer(.head(head))
  }

  private func take(body: [UInt8]) -> Bool {
    if body.count > limit - bodyBytes {
      failure = .bodyTooLarge(limit: limit)
      return false
    }
    bodyBytes += body.count
    return offer(.body(body))
  }

  private func offer(_ part: HTTPPart) -> Bool {
    isEndedByReceiver = !receive(part)
    return !isEndedByReceiver
  }

  private func goesOn() -> Bool {
    if isCancelled() { failure = .interrupted }
    return failure == nil
  }
}
