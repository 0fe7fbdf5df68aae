#ifndef CREDMGR_CCURL_H
#define CREDMGR_CCURL_H

#include <curl/curl.h>
#include <stdint.h>

// curl_easy_setopt and curl_easy_getinfo are variadic, which Swift cannot call: one function for each type.

static inline CURLcode credmgr_curl_set_number(CURL *handle, CURLoption option, long value) {
  return curl_easy_setopt(handle, option, value);
}

static inline CURLcode credmgr_curl_set_pointer(CURL *handle, CURLoption option, const void *value) {
  return curl_easy_setopt(handle, option, value);
}

/// libcurl copies the body only by this order: first its length, then the copy.
static inline CURLcode credmgr_curl_set_body(CURL *handle, const void *bytes, int64_t count) {
  CURLcode code = curl_easy_setopt(handle, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)count);
  return code != CURLE_OK ? code : curl_easy_setopt(handle, CURLOPT_COPYPOSTFIELDS, count > 0 ? bytes : "");
}

/// A body that is read while it is sent; its length is known.
static inline CURLcode credmgr_curl_set_reader(CURL *handle, int64_t count, void *context, curl_read_callback reader) {
  CURLcode code = curl_easy_setopt(handle, CURLOPT_UPLOAD, 1L);
  if (code == CURLE_OK) code = curl_easy_setopt(handle, CURLOPT_INFILESIZE_LARGE, (curl_off_t)count);
  if (code == CURLE_OK) code = curl_easy_setopt(handle, CURLOPT_READFUNCTION, reader);
  if (code == CURLE_OK) code = curl_easy_setopt(handle, CURLOPT_READDATA, context);
  return code;
}

typedef size_t (*credmgr_curl_writer)(char *bytes, size_t size, size_t count, void *context);
typedef int (*credmgr_curl_watcher)(
  void *context, curl_off_t down_total, curl_off_t down, curl_off_t up_total, curl_off_t up);

static inline CURLcode credmgr_curl_set_callbacks(
  CURL *handle, void *context, credmgr_curl_writer header, credmgr_curl_writer body, credmgr_curl_watcher progress
) {
  CURLcode code = curl_easy_setopt(handle, CURLOPT_HEADERFUNCTION, header);
  if (code == CURLE_OK) code = curl_easy_setopt(handle, CURLOPT_HEADERDATA, context);
  if (code == CURLE_OK) code = curl_easy_setopt(handle, CURLOPT_WRITEFUNCTION, body);
  if (code == CURLE_OK) code = curl_easy_setopt(handle, CURLOPT_WRITEDATA, context);
  if (code == CURLE_OK) code = curl_easy_setopt(handle, CURLOPT_XFERINFOFUNCTION, progress);
  if (code == CURLE_OK) code = curl_easy_setopt(handle, CURLOPT_XFERINFODATA, context);
  if (code == CURLE_OK) code = curl_easy_setopt(handle, CURLOPT_NOPROGRESS, 0L);
  return code;
}

static inline CURLcode credmgr_curl_global_init(void) { return curl_global_init(CURL_GLOBAL_DEFAULT); }

#endif
