import CSecret

/// The Secret Service of the session (specifications.freedesktop.org/secret-service), as libsecret speaks to it.
///
/// Nothing is unlocked, and nobody is asked: whoever asks needs a display. Not thread-safe.
@safe public final class SecretStore {
  private let library: CSecretLibrary
  private let service: OpaquePointer

  /// Loads the library and connects to the service, which the bus may start.
  ///
  /// The address of the session bus has to be in the environment: without one libsecret would try to start a bus.
  ///
  /// - Throws: `.noLibrary`, `.noBus`, `.noService`, `.failed`.
  public init() throws(SecretStoreError) {
    var library = unsafe CSecretLibrary()
    guard unsafe csecret_load(&library) != 0 else { throw .noLibrary }
    unsafe self.library = unsafe library
    var error: UnsafeMutablePointer<CSecretError>?
    // The session encrypts what goes over the bus, where the service can do it.
    guard let service = unsafe library.secret_service_get_sync(Int32(CSECRET_OPEN_SESSION), nil, &error) else {
      throw unsafe Self.failure(error, library, otherwise: .noBus)
    }
    unsafe self.service = unsafe service
  }

  deinit { unsafe library.g_object_unref(UnsafeMutableRawPointer(service)) }

  /// The secret of an item.
  ///
  /// - Throws: `.noItem`, `.locked`, `.failed`.
  public func secret(_ name: [UInt8]) throws(SecretStoreError) -> [UInt8] {
    let attributes = unsafe Attributes(name, library)
    var error: UnsafeMutablePointer<CSecretError>?
    let items = unsafe library.secret_service_search_sync(
      service, csecret_schema(), attributes.table, Int32(CSECRET_LOAD_SECRETS), nil, &error)
    if unsafe error != nil { throw unsafe Self.failure(error, library) }
    // A list without elements is NULL (GLib, "Doubly-Linked Lists").
    guard let items = unsafe items else { throw .noItem }
    defer { unsafe release(items) }
    let item = unsafe OpaquePointer(items.pointee.data)
    if unsafe library.secret_item_get_locked(item) != 0 { throw .locked }
    guard let value = unsafe library.secret_item_get_secret(item) else { throw .noItem }
    defer { unsafe library.secret_value_unref(value) }
    var count = 0
    guard let bytes = unsafe library.secret_value_get(value, &count) else { throw .noItem }
    return unsafe UnsafeBufferPointer(start: bytes, count: count).map { UInt8(bitPattern: $0) }
  }

  private func release(_ items: UnsafeMutablePointer<CSecretList>) {
    var next: UnsafeMutablePointer<CSecretList>? = unsafe items
    while let item = unsafe next {
      unsafe library.g_object_unref(item.pointee.data)
      unsafe next = unsafe item.pointee.next
    }
    unsafe library.g_list_free(items)
  }

  /// Keeps a secret in the default collection, in the place of what is under the name.
  ///
  /// - Parameter label: what the person sees in a list of secrets.
  /// - Throws: `.locked` if the collection is, or there is none; `.failed`.
  public func store(_ secret: [UInt8], as name: [UInt8], label: String) throws(SecretStoreError) {
    try requireOpenCollection()
    let attributes = unsafe Attributes(name, library)
    let characters = secret.map { CChar(bitPattern: $0) }
    guard let value = unsafe library.secret_value_new(characters, characters.count, "text/plain") else {
      throw .failed
    }
    defer { unsafe library.secret_value_unref(value) }
    var error: UnsafeMutablePointer<CSecretError>?
    let isStored = unsafe library.secret_service_store_sync(
      service, csecret_schema(), attributes.table, Self.collection, label, value, nil, &error)
    guard isStored != 0 else { throw unsafe Self.failure(error, library) }
  }

  /// Forgets an item; one that is not there is forgotten already.
  ///
  /// - Throws: `.locked`, `.failed`.
  public func remove(_ name: [UInt8]) throws(SecretStoreError) {
    let attributes = unsafe Attributes(name, library)
    var error: UnsafeMutablePointer<CSecretError>?
    _ = unsafe library.secret_service_clear_sync(service, csecret_schema(), attributes.table, nil, &error)
    if unsafe error != nil { throw unsafe Self.failure(error, library) }
  }

  private static let collection = "default"

  /// Storing into a locked collection, or where there is none, would ask the person.
  private func requireOpenCollection() throws(SecretStoreError) {
    var error: UnsafeMutablePointer<CSecretError>?
    let collection = unsafe library.secret_collection_for_alias_sync(service, Self.collection, 0, nil, &error)
    if unsafe error != nil { throw unsafe Self.failure(error, library) }
    guard let collection = unsafe collection else { throw .locked }
    defer { unsafe library.g_object_unref(UnsafeMutableRawPointer(collection)) }
    if unsafe library.secret_collection_get_locked(collection) != 0 { throw .locked }
  }

  /// - Parameter otherwise: what an error means that is neither of the bus nor of libsecret.
  private static func failure(
    _ error: UnsafeMutablePointer<CSecretError>?, _ library: CSecretLibrary, otherwise: SecretStoreError = .failed
  ) -> SecretStoreError {
    guard let error = unsafe error else { return otherwise }
    defer { unsafe library.g_error_free(error) }
    let (domain, code) = unsafe (error.pointee.domain, error.pointee.code)
    if unsafe domain == library.secret_error_get_quark() { return code == isLocked ? .locked : .failed }
    if unsafe domain == library.g_dbus_error_quark() { return isNoService(code) ? .noService : .failed }
    return otherwise
  }

  /// SECRET_ERROR_IS_LOCKED.
  private static let isLocked: Int32 = 2
  /// G_DBUS_ERROR_SERVICE_UNKNOWN, …_NAME_HAS_NO_OWNER, and those that begin with …_SPAWN: the bus could not start it.
  private static func isNoService(_ code: Int32) -> Bool { code == 2 || code == 3 || (23...33).contains(code) }
}

/// The table that an item is found by.
@unsafe private final class Attributes {
  let table: OpaquePointer?
  private let library: CSecretLibrary
  private let texts: [UnsafeMutableBufferPointer<CChar>]

  init(_ name: [UInt8], _ library: CSecretLibrary) {
    unsafe self.library = unsafe library
    // The table keeps the pointers alone.
    unsafe texts = unsafe [Array("vault-key".utf8), name].map { text in
      let characters = SecretServiceProgram.text(text)
      let copy = UnsafeMutableBufferPointer<CChar>.allocate(capacity: characters.count)
      _ = unsafe copy.initialize(from: characters)
      return unsafe copy
    }
    unsafe table = unsafe library.g_hash_table_new(library.g_str_hash, library.g_str_equal)
    _ = unsafe library.g_hash_table_insert(table, texts[0].baseAddress, texts[1].baseAddress)
  }

  deinit {
    unsafe library.g_hash_table_unref(table)
    unsafe texts.forEach { unsafe $0.deallocate() }
  }
}
