#ifndef CREDMGR_COPENSSL_H
#define CREDMGR_COPENSSL_H

// The digests that only work on a block of memory. OpenSSL 3 deprecates them in favour of EVP, which finds digests by
// name and so links 3.2 MB of OpenSSL into a static program.
#define OPENSSL_SUPPRESS_DEPRECATED
#include <openssl/crypto.h>
#include <openssl/md5.h>
#include <openssl/sha.h>

#include <openssl/bio.h>
#include <openssl/core_names.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/rsa.h>
#include <openssl/x509.h>
#include <stddef.h>

// Keys and signatures. A weak reference links nothing from a static library: in a fully static program these functions
// are null, and a program linked with the shared library has to sign.
#define COPENSSL_SIGNATURES(EACH) \
  EACH(ASN1_TIME_diff) EACH(ASN1_TIME_free) EACH(ASN1_TIME_set) EACH(BIO_free) EACH(BIO_new_mem_buf) \
  EACH(ERR_clear_error) EACH(EVP_DigestSign) EACH(EVP_DigestSignInit) EACH(EVP_DigestVerify) \
  EACH(EVP_DigestVerifyInit) EACH(EVP_MD_CTX_free) EACH(EVP_MD_CTX_new) EACH(EVP_PKEY_CTX_set_rsa_padding) \
  EACH(EVP_PKEY_CTX_set_rsa_pss_saltlen) EACH(EVP_PKEY_free) EACH(EVP_PKEY_get_base_id) \
  EACH(EVP_PKEY_get_group_name) EACH(EVP_PKEY_get_octet_string_param) EACH(EVP_PKEY_get_size) EACH(EVP_sha1) \
  EACH(EVP_sha256) EACH(EVP_sha384) EACH(EVP_sha512) EACH(PEM_read_bio_PrivateKey) EACH(PEM_read_bio_X509) \
  EACH(X509_check_private_key) EACH(X509_free) EACH(X509_get0_notAfter) EACH(X509_get0_notBefore) EACH(d2i_PUBKEY) \
  EACH(i2d_PUBKEY)

#define COPENSSL_PRAGMA(text) _Pragma(#text)
#define COPENSSL_WEAK(name) COPENSSL_PRAGMA(weak name)
#define COPENSSL_MEMBER(name) __typeof__(&name) name;
#define COPENSSL_VALUE(name) name,

COPENSSL_SIGNATURES(COPENSSL_WEAK)

/// The functions for keys and signatures under OpenSSL's names.
typedef struct {
  COPENSSL_SIGNATURES(COPENSSL_MEMBER)
} COpenSSLSignatures;

/// Fills in all functions; returns 0 in a program linked without them.
static inline int copenssl_signatures(COpenSSLSignatures *functions) {
  if (!EVP_DigestSign || !PEM_read_bio_PrivateKey) return 0;
  *functions = (COpenSSLSignatures){COPENSSL_SIGNATURES(COPENSSL_VALUE)};
  return 1;
}

// Each digest is one call that cannot fail.
#define COPENSSL_DIGEST(name, CONTEXT, FUNCTION) \
  static inline void name(const unsigned char *bytes, size_t count, unsigned char *digest) { \
    CONTEXT context; \
    FUNCTION##_Init(&context); \
    FUNCTION##_Update(&context, bytes, count); \
    FUNCTION##_Final(digest, &context); \
    OPENSSL_cleanse(&context, sizeof context); \
  }
COPENSSL_DIGEST(copenssl_md5, MD5_CTX, MD5)
COPENSSL_DIGEST(copenssl_sha1, SHA_CTX, SHA1)
COPENSSL_DIGEST(copenssl_sha256, SHA256_CTX, SHA256)
COPENSSL_DIGEST(copenssl_sha384, SHA512_CTX, SHA384)
COPENSSL_DIGEST(copenssl_sha512, SHA512_CTX, SHA512)

#endif
