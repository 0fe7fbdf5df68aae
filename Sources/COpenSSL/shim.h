#ifndef CREDMGR_COPENSSL_H
#define CREDMGR_COPENSSL_H

// The digests that work on a block of memory and nothing else. OpenSSL 3 calls them deprecated in favour of EVP, which finds
// a digest by its name among all that there are, and so brings all there is of OpenSSL into a static program: 3.2 MB.
#define OPENSSL_SUPPRESS_DEPRECATED
#include <openssl/crypto.h>
#include <openssl/sha.h>

#include <openssl/bio.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <stddef.h>

// Keys and signatures. A weak reference takes nothing out of a static library: in a fully static program these functions are
// null, and it has to leave signatures to a program that is linked with the shared library.
#pragma weak BIO_free
#pragma weak BIO_new_mem_buf
#pragma weak ERR_clear_error
#pragma weak EVP_DigestSign
#pragma weak EVP_DigestSignInit
#pragma weak EVP_DigestVerify
#pragma weak EVP_DigestVerifyInit
#pragma weak EVP_MD_CTX_free
#pragma weak EVP_MD_CTX_new
#pragma weak EVP_PKEY_free
#pragma weak EVP_PKEY_get_base_id
#pragma weak EVP_PKEY_get_group_name
#pragma weak EVP_PKEY_get_size
#pragma weak EVP_sha1
#pragma weak EVP_sha256
#pragma weak EVP_sha384
#pragma weak EVP_sha512
#pragma weak PEM_read_bio_PrivateKey

/// The functions for keys and signatures; the names are theirs.
typedef struct {
  __typeof__(&BIO_free) BIO_free;
  __typeof__(&BIO_new_mem_buf) BIO_new_mem_buf;
  __typeof__(&ERR_clear_error) ERR_clear_error;
  __typeof__(&EVP_DigestSign) EVP_DigestSign;
  __typeof__(&EVP_DigestSignInit) EVP_DigestSignInit;
  __typeof__(&EVP_DigestVerify) EVP_DigestVerify;
  __typeof__(&EVP_DigestVerifyInit) EVP_DigestVerifyInit;
  __typeof__(&EVP_MD_CTX_free) EVP_MD_CTX_free;
  __typeof__(&EVP_MD_CTX_new) EVP_MD_CTX_new;
  __typeof__(&EVP_PKEY_free) EVP_PKEY_free;
  __typeof__(&EVP_PKEY_get_base_id) EVP_PKEY_get_base_id;
  __typeof__(&EVP_PKEY_get_group_name) EVP_PKEY_get_group_name;
  __typeof__(&EVP_PKEY_get_size) EVP_PKEY_get_size;
  __typeof__(&EVP_sha1) EVP_sha1;
  __typeof__(&EVP_sha256) EVP_sha256;
  __typeof__(&EVP_sha384) EVP_sha384;
  __typeof__(&EVP_sha512) EVP_sha512;
  __typeof__(&PEM_read_bio_PrivateKey) PEM_read_bio_PrivateKey;
} COpenSSLSignatures;

/// Fills in all functions; 0 in a program that was linked without them.
static inline int copenssl_signatures(COpenSSLSignatures *functions) {
  if (!EVP_DigestSign || !PEM_read_bio_PrivateKey) return 0;
  *functions = (COpenSSLSignatures){
    BIO_free, BIO_new_mem_buf, ERR_clear_error, EVP_DigestSign, EVP_DigestSignInit, EVP_DigestVerify,
    EVP_DigestVerifyInit, EVP_MD_CTX_free, EVP_MD_CTX_new, EVP_PKEY_free, EVP_PKEY_get_base_id,
    EVP_PKEY_get_group_name, EVP_PKEY_get_size, EVP_sha1, EVP_sha256, EVP_sha384, EVP_sha512,
    PEM_read_bio_PrivateKey,
  };
  return 1;
}

// One call for each digest; they cannot fail.
static inline void copenssl_sha1(const unsigned char *bytes, size_t count, unsigned char *digest) {
  SHA_CTX context;
  SHA1_Init(&context);
  SHA1_Update(&context, bytes, count);
  SHA1_Final(digest, &context);
  OPENSSL_cleanse(&context, sizeof context);
}

static inline void copenssl_sha256(const unsigned char *bytes, size_t count, unsigned char *digest) {
  SHA256_CTX context;
  SHA256_Init(&context);
  SHA256_Update(&context, bytes, count);
  SHA256_Final(digest, &context);
  OPENSSL_cleanse(&context, sizeof context);
}

static inline void copenssl_sha384(const unsigned char *bytes, size_t count, unsigned char *digest) {
  SHA512_CTX context;
  SHA384_Init(&context);
  SHA384_Update(&context, bytes, count);
  SHA384_Final(digest, &context);
  OPENSSL_cleanse(&context, sizeof context);
}

static inline void copenssl_sha512(const unsigned char *bytes, size_t count, unsigned char *digest) {
  SHA512_CTX context;
  SHA512_Init(&context);
  SHA512_Update(&context, bytes, count);
  SHA512_Final(digest, &context);
  OPENSSL_cleanse(&context, sizeof context);
}

#endif
