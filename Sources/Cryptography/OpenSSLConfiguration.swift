import COpenSSL

/// The system's configuration of OpenSSL, which is read at the first digest or signature.
public enum OpenSSLConfiguration {
  /// Keeps this process from reading it.
  ///
  /// It can name shared libraries to be loaded, and a static program must not load any: they bring a second C
  /// library with them. A program that uses TLS should not call this, because the system's rules for TLS
  /// stand there as well. To be called before anything else of this module.
  public static func ignore() {
    OPENSSL_init_crypto(UInt64(OPENSSL_INIT_NO_LOAD_CONFIG), nil)
  }
}
