#ifndef CREDMGR_CTLS_H
#define CREDMGR_CTLS_H

#include <dlfcn.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <openssl/x509.h>
#include <openssl/x509v3.h>

// The functions for TLS servers and certificates. OpenSSL is loaded, not linked, because only the simulator needs them.
#define CTLS_FUNCTIONS(EACH) \
  EACH(ASN1_TIME_cmp_time_t) EACH(BIO_free) EACH(BIO_new) EACH(BIO_read) EACH(BIO_s_mem) EACH(BIO_write) \
  EACH(ERR_clear_error) EACH(SSL_CTX_ctrl) EACH(SSL_CTX_free) EACH(SSL_CTX_new) EACH(SSL_CTX_set_num_tickets) \
  EACH(SSL_CTX_set_options) EACH(SSL_CTX_set_verify) EACH(SSL_CTX_use_PrivateKey_ASN1) \
  EACH(SSL_CTX_use_certificate_ASN1) EACH(SSL_free) EACH(SSL_get1_peer_certificate) EACH(SSL_get_error) EACH(SSL_new) \
  EACH(SSL_read) EACH(SSL_set_accept_state) EACH(SSL_set_bio) EACH(SSL_shutdown) EACH(SSL_write) \
  EACH(TLS_server_method) EACH(X509_check_issued) EACH(X509_free) EACH(X509_get0_notAfter) EACH(X509_get0_notBefore) \
  EACH(X509_get0_pubkey) EACH(X509_get_subject_name) EACH(X509_verify) EACH(d2i_X509) EACH(i2d_X509) \
  EACH(i2d_X509_NAME)

#define CTLS_MEMBER(name) __typeof__(&name) name;
#define CTLS_LOAD(name) \
  if (!(functions->name = (__typeof__(&name))dlsym(library, #name))) return 0;

/// The functions under OpenSSL's names.
typedef struct {
  CTLS_FUNCTIONS(CTLS_MEMBER)
} credmgr_tls;

/// `SSL_OP_NO_TICKET` as a number, which Swift does not read from the macro.
static const uint64_t SSL_NO_TICKETS = SSL_OP_NO_TICKET;

/// Fills in all functions; returns 0 if the library is missing.
static inline int credmgr_tls_load(credmgr_tls *functions) {
  void *library = dlopen("libssl.so.3", RTLD_LAZY | RTLD_LOCAL | RTLD_NODELETE);
  if (library == NULL) return 0;
  CTLS_FUNCTIONS(CTLS_LOAD)
  return 1;
}

#endif
