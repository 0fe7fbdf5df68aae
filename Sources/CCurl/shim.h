#ifndef CREDMGR_CCURL_H
#define CREDMGR_CCURL_H

#include <curl/curl.h>
#include <dlfcn.h>
#include <stdint.h>

/// The functions of libcurl that credmgr calls. libcurl is loaded, not linked, so that a thread can load it and its
/// forty libraries while the vault is read.
typedef struct {
  __typeof__(curl_global_init) *global_init;
  __typeof__(curl_easy_init) *easy;
  __typeof__(curl_easy_cleanup) *cleanup;
  __typeof__(curl_easy_reset) *reset;
  __typeof__(curl_easy_perform) *perform;
  CURLcode (*setopt)(CURL *handle, CURLoption option, ...);
  __typeof__(curl_easy_strerror) *error_text;
  __typeof__(curl_slist_append) *append;
  __typeof__(curl_slist_free_all) *free_all;
} credmgr_curl;

static inline int credmgr_curl_load(credmgr_curl *curl) {
  void *library = dlopen("libcurl.so.4", RTLD_LAZY | RTLD_LOCAL | RTLD_NODELETE);
  if (library == NULL) return 0;
  curl->global_init = dlsym(library, "curl_global_init");
  curl->easy = dlsym(library, "curl_easy_init");
  curl->cleanup = dlsym(library, "curl_easy_cleanup");
  curl->reset = dlsym(library, "curl_easy_reset");
  curl->perform = dlsym(library, "curl_easy_perform");
  curl->setopt = dlsym(library, "curl_easy_setopt");
  curl->error_text = dlsym(library, "curl_easy_strerror");
  curl->append = dlsym(library, "curl_slist_append");
  curl->free_all = dlsym(library, "curl_slist_free_all");
  return curl->global_init && curl->easy && curl->cleanup && curl->reset && curl->perform && curl->setopt
    && curl->error_text && curl->append && curl->free_all && curl->global_init(CURL_GLOBAL_DEFAULT) == CURLE_OK;
}

// Swift cannot call the variadic curl_easy_setopt, so each type has a function.

static inline CURLcode credmgr_curl_set_number(credmgr_curl curl, CURL *handle, CURLoption option, long value) {
  return curl.setopt(handle, option, value);
}

static inline CURLcode credmgr_curl_set_pointer(credmgr_curl curl, CURL *handle, CURLoption option, const void *value) {
  return curl.setopt(handle, option, value);
}

/// Sets the length first and then copies the body; libcurl requires this order.
static inline CURLcode credmgr_curl_set_body(credmgr_curl curl, CURL *handle, const void *bytes, int64_t count) {
  CURLcode code = curl.setopt(handle, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)count);
  return code != CURLE_OK ? code : curl.setopt(handle, CURLOPT_COPYPOSTFIELDS, count > 0 ? bytes : "");
}

/// Copies a certificate with its private key, both as PEM. Without a passphrase, libcurl reads address 0 for an
/// encrypted key.
static inline CURLcode credmgr_curl_set_certificate(credmgr_curl curl, CURL *handle, const void *bytes, size_t count) {
  struct curl_blob blob = {(void *)bytes, count, CURL_BLOB_COPY};
  CURLcode code = curl.setopt(handle, CURLOPT_SSLCERT_BLOB, &blob);
  if (code == CURLE_OK) code = curl.setopt(handle, CURLOPT_SSLKEY_BLOB, &blob);
  return code != CURLE_OK ? code : curl.setopt(handle, CURLOPT_KEYPASSWD, "");
}

/// Sets a body of known length that libcurl reads while it sends it.
static inline CURLcode credmgr_curl_set_reader(
  credmgr_curl curl, CURL *handle, int64_t count, void *context, curl_read_callback reader
) {
  CURLcode code = curl.setopt(handle, CURLOPT_UPLOAD, 1L);
  if (code == CURLE_OK) code = curl.setopt(handle, CURLOPT_INFILESIZE_LARGE, (curl_off_t)count);
  if (code == CURLE_OK) code = curl.setopt(handle, CURLOPT_READFUNCTION, reader);
  if (code == CURLE_OK) code = curl.setopt(handle, CURLOPT_READDATA, context);
  return code;
}

typedef size_t (*credmgr_curl_writer)(char *bytes, size_t size, size_t count, void *context);
typedef int (*credmgr_curl_watcher)(
  void *context, curl_off_t down_total, curl_off_t down, curl_off_t up_total, curl_off_t up);

static inline CURLcode credmgr_curl_set_callbacks(
  credmgr_curl curl, CURL *handle, void *context, credmgr_curl_writer header, credmgr_curl_writer body,
  credmgr_curl_watcher progress
) {
  CURLcode code = curl.setopt(handle, CURLOPT_HEADERFUNCTION, header);
  if (code == CURLE_OK) code = curl.setopt(handle, CURLOPT_HEADERDATA, context);
  if (code == CURLE_OK) code = curl.setopt(handle, CURLOPT_WRITEFUNCTION, body);
  if (code == CURLE_OK) code = curl.setopt(handle, CURLOPT_WRITEDATA, context);
  if (code == CURLE_OK) code = curl.setopt(handle, CURLOPT_XFERINFOFUNCTION, progress);
  if (code == CURLE_OK) code = curl.setopt(handle, CURLOPT_XFERINFODATA, context);
  if (code == CURLE_OK) code = curl.setopt(handle, CURLOPT_NOPROGRESS, 0L);
  return code;
}

#endif
