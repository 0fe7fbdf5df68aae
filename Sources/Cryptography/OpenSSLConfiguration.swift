import COpenSSL

/// The system's configuration of OpenSSL, which is read at the first digest or signature.
enum OpenSSLConfiguration {
  /// Keeps a fully static program from reading it. To be called before anything else of OpenSSL.
  ///
  /// It can name shared libraries to be loaded, and a static program must not load any: they bring a second C
  /// library with them. A program that is linked dynamically reads it, because the system's rules for TLS stand there
  /// as well. Not done at the start of every program: it takes a fourteenth of the time of `credmgr token`.
  static func ignoreWhereStatic() {
    if credmgr_is_fully_static() { OPENSSL_init_crypto(UInt64(OPENSSL_INIT_NO_LOAD_CONFIG), nil) }
  }
}
